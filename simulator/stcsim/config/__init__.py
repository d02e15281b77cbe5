"""Strict YAML, the configuration models and overrides; knows nothing of simulation."""
