"""The result of a fit: an immutable model, and one function per question about it.

Names are loaded when first used, so that a question imports only what it needs; `__init__.pyi`
lists them.
"""

import lazy_loader

from efemb._deprecated import BRITISH, keep_old_names

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = keep_old_names(__name__, BRITISH, _load)
