"""Exponential family embeddings: word embeddings for any data.

Names are loaded when first used, so that `import efemb` is cheap; `__init__.pyi` lists them.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
