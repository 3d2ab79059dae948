from . import callbacks, optimizers

__all__ = ["callbacks", "optimizers"]
