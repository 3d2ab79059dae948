"""HasFitted: the interface of models that the groups of questions rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from efemb._typing import Floats
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.fitted.labeled import LabeledVectors
    from efemb.table import Table


class HasFitted:
    """Anything that has a fitted model."""

    if TYPE_CHECKING:

        def fitted(self) -> FittedEmbedding:
            """The fitted model."""

        def conditional(self, X: Any) -> Floats:
            """Conditional means."""

        recommend: Callable[..., Table]
        _of_group_or_time: Callable[[Any, Any], Any]
        of_group: Callable[[Any], FittedEmbedding]
        vectors: Callable[..., LabeledVectors]
