"""Tables and plots, made from results only."""
