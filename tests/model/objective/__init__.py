"""The objective of every model against the loop oracle."""
