"""Terms: additions to the linear predictor besides the context; one per file.

Names are loaded when first used; `__init__.pyi` lists them. `Term.choices` imports every file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
