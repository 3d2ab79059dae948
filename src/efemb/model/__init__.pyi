from . import combine, contexts, families, links, parameters, priors, structures, terms, zeros

__all__ = [
    "combine",
    "contexts",
    "families",
    "links",
    "parameters",
    "priors",
    "structures",
    "terms",
    "zeros",
]
