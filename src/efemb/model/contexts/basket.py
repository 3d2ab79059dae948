"""Basket: the other non-zero entities of the same row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efemb.errors import ParameterError, check_number
from efemb.model.contexts.base import Context
from efemb.model.ingredient import positive_number

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.model.contexts.bound.rows import RowBags


class Basket(Context):
    """The other non-zero entities of the row: items of a trip, movies of a user.

    Parameters
    ----------
    scale : {"total", "items", "none"}, default="total"
        Divide the context sum by the sum of the members' values, by their number, or by 1.
    binary : bool, default=False
        Count a member as 1, whatever its value.
    pseudo_count : float, default=0.0
        Added to the divisor: with d the sum or the number of the members, the context is
        ``sum of x_m alpha_m / (d + pseudo_count)``. The smaller the context relative to this
        value, the closer the prediction is to the intercepts. This is
        ``(s + pseudo_count * a_0) / (d + pseudo_count)`` for any default context a_0, since a model
        with alpha_m - a_0 and intercept_n + rho_n . a_0 is the same one.
    thinning : float, default=0.0
        Fraction of the rows, in [0, 1], whose contexts are thinned in each pass of a fit, so that
        the model learns to predict from contexts of any size. A thinned context keeps each member
        with the same probability, drawn for each row log-uniformly between one over the number of
        members and one. Targets are never thinned, and contexts only during a fit.

    Examples
    --------
    >>> import efemb
    >>> trips = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> context = Basket(scale="items", pseudo_count=1.0)
    >>> model = efemb.PoissonEmbedding(2, context=context, random_state=0).fit(trips)
    >>> model.context_sums(trips, ([0], [1])).shape
    (1, 2)
    """

    unnamed = 0.0
    rest_of_row = True

    def __init__(
        self,
        scale: str = "total",
        binary: bool = False,
        pseudo_count: float = 0.0,
        thinning: float = 0.0,
    ) -> None:
        self.scale = scale
        self.binary = binary
        self.pseudo_count = pseudo_count
        self.thinning = thinning

    def check(self) -> None:
        """Raise if an option is out of range."""
        super().check()
        if positive_number(self, "pseudo_count", zero=True) and self.scale == "none":
            raise ParameterError(
                "Basket(pseudo_count=) is added to the divisor of the context, and scale='none' "
                "has none: use scale='total' or scale='items'"
            )
        check_number("Basket.thinning", self.thinning, low=0, high=1)

    def bind(self, data: Dataset) -> RowBags:
        """Each row is one bag, from which every observation is taken out for its own prediction."""
        from efemb.model.contexts.bound.rows import RowBags

        return RowBags(
            data, scale=self.scale, binary=self.binary, pseudo_count=float(self.pseudo_count)
        )
