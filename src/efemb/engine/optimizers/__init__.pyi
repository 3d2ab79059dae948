from .first_order import LBFGS, SGD, Adagrad, Adam

__all__ = ["LBFGS", "SGD", "Adagrad", "Adam"]
