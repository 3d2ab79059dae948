"""Text as documents of words."""
