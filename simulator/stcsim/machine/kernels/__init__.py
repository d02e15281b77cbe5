"""Jitted twins of the reference engine: arrays in, arrays out, no objects, no user errors."""
