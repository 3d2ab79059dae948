"""A page in the browser that shows an embedding: its map, relations, baskets and topics.

`model.explore()` shows it, `model.to_html(path)` writes it as one self-contained file, and `efemb
explore MODEL` serves it.
"""

from efemb.explore.explorer import Explorer, prepare, show

__all__ = ["Explorer", "prepare", "show"]
