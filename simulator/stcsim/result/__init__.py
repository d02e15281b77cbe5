"""What a run returns, and its files."""
