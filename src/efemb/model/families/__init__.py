"""Conditional exponential families, one per file; new files here are found automatically.

Names are loaded when first used; `__init__.pyi` lists them. `Family.choices` imports every file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
