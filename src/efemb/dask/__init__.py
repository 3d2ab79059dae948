"""Dask: fits, scores and answers on the workers of a cluster; results are those of one machine.

Needs ``pip install "efemb[dask]"``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
