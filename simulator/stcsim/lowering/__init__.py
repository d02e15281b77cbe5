"""Plug-ins that turn a problem into per-warp programs; no cycles."""
