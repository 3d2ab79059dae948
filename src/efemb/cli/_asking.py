"""Questions to a saved model: loading it, and reading labels and contexts as people type them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from efemb.cli._show import remark
from efemb.errors import DataError

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding


def opened(path: Path) -> FittedEmbedding:
    """A saved model of vectors."""
    from efemb.fitted import FittedEmbedding, load

    model = load(path)
    if not isinstance(model, FittedEmbedding):
        raise DataError(
            f"{path} holds a {type(model).__name__}, not an embedding, which this command needs: "
            "use it from Python, by efemb.load"
        )
    return model


class Labels:
    """Labels of a model by what people type: any part of a label that no other has.

    What was meant by a part is said on standard error.
    """

    def __init__(self, model: FittedEmbedding) -> None:
        from efemb.labelled.choice import Choice

        self.model = model
        self._choice = Choice(model.entities, match="prefix")

    def one(self, typed: str) -> Any:
        """The label that is meant."""
        label = self.model.entities[self._choice.code(typed)]
        if str(label) != typed:
            remark(f"{typed}: {label}")
        return label

    def query(self, typed: list[str]) -> Any:
        """One label, or a list of several."""
        found = [self.one(part) for part in typed]
        return found if len(found) > 1 else found[0]

    def filters(
        self, min_count: int | None, where: str | None, exclude: list[str] | None
    ) -> dict[str, Any]:
        """Filters that were asked for."""
        found: dict[str, Any] = {} if min_count is None else {"min_count": min_count}
        if where is not None:
            found["where"] = where
        if exclude:
            found["exclude"] = [self.one(typed) for typed in exclude]
        return found

    def context(self, parts: list[str]) -> Any:
        """`beer=2 chips` as amounts; words of a text stay in their order."""
        from efemb.contexts.window import Window

        if isinstance(self.model.spec.context, Window):
            return [self.one(word) for part in parts for word in part.split()]
        amounts: dict[Any, float] = {}
        for part in parts:
            typed, amount = self._amount(part)
            label = self.one(typed)
            amounts[label] = amounts.get(label, 0.0) + amount
        return amounts

    def _amount(self, part: str) -> tuple[str, float]:
        """Label and amount; a known label may itself hold an equals sign."""
        label, sign, number = part.rpartition("=")
        if not sign or part in self.model.entities:
            return part, 1.0
        try:
            return label, float(number)
        except ValueError:
            raise DataError(
                f"{part!r}: what follows the equals sign must be a number, as in milk=2"
            ) from None


def data_of(path: Path | None, model: FittedEmbedding, **reading: Any) -> Any:
    """The data behind a question, or None."""
    if path is None:
        return None
    from efemb.cli._reading import Reading

    # What is bought alone is counted: it is the evidence for substitutes.
    options: dict[str, Any] = {"min_count": 1, "min_items": 1, "progress": True, "say": remark}
    return Reading(**reading, **options).read_for(path, model)


def asked_pairs(
    model: Path, items: list[str], filters: tuple[Any, ...], data: Path | None, **reading: Any
) -> tuple[FittedEmbedding, Any, dict[str, Any]]:
    """A saved model, the labels that are asked for, and options of a question about pairs."""
    found = opened(model)
    labels = Labels(found)
    query = labels.query(items)
    return found, query, {**labels.filters(*filters), "data": data_of(data, found, **reading)}
