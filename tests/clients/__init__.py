"""Real clients against real broker processes."""
