"""Text, one step per word inside a kernel."""
