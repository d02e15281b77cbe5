"""Plug-ins that encode operands; no timing, no machines."""
