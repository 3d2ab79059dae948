"""Exponential family embeddings: word embeddings for any data.

Names are loaded when first used, so that `import efemb` is cheap; `__init__.pyi` lists them.
"""

import lazy_loader

from efemb import _deprecated

__version__ = "0.3.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = _deprecated.keep_old_names(__name__, _deprecated.NAMES, _load)
