"""Contexts: which other observations an observation depends on; one per file.

Names are loaded when first used; `__init__.pyi` lists them. `Context.choices` imports every file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
