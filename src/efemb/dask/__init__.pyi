from .answers import recommend, score, transform
from .fit import fit, prepare

__all__ = ["fit", "prepare", "recommend", "score", "transform"]
