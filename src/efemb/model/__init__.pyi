from . import combine, contexts, families, links, parameters, priors, structures, zeros

__all__ = [
    "combine",
    "contexts",
    "families",
    "links",
    "parameters",
    "priors",
    "structures",
    "zeros",
]
