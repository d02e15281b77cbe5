"""The cycle engines and their datapaths; no files, no YAML, no networks."""
