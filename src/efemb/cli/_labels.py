"""Queries of a saved model: loading it, and reading labels and contexts as people type them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import efemb
from efemb.cli._arguments import Filters, Layout, decode_letters
from efemb.cli._output import remark
from efemb.errors import DataError

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


def open_model(path: Path) -> FittedEmbedding:
    """Load an embedding; for a basket model, the one that answers questions about vectors."""
    return embedding_of(efemb.load(path), path)


def embedding_of(model: Any, path: Path) -> FittedEmbedding:
    """The embedding of a loaded model."""
    from efemb.fitted.embedding import FittedEmbedding

    if hasattr(model, "fitted"):
        model = model.fitted()
    if not isinstance(model, FittedEmbedding):
        raise DataError(
            f"{path} holds a {type(model).__name__}, but this command needs an embedding; "
            "use it from Python with efemb.load"
        )
    return model


class Labels:
    """Resolves typed text to labels of a model: any part of a label that is unambiguous.

    Completed parts are reported on standard error, and so are unknown labels that are
    skipped.
    """

    def __init__(self, model: Any, *, skip_unknown: bool = False) -> None:
        from efemb.fitted.selection import Choice

        self.model, self.skip_unknown = model, skip_unknown
        self.entities = model._item_labels()
        self._choice = Choice(self.entities, match="prefix")

    def find(self, typed: str) -> Any:
        """The label that the text means."""
        typed = decode_letters(typed)
        label = self.entities[self._choice.code(typed)]
        if str(label) != typed:
            remark(f"{typed}: {label}")
        return label

    def query(self, typed: list[str]) -> Any:
        """A single label, or a list of several."""
        typed = decode_letters(typed)
        labels = [self.find(text) for text in self._known(typed, typed)]
        return labels if len(labels) > 1 else labels[0]

    def _known(self, typed: list[str], labels: list[str]) -> list[str]:
        """What was typed without unknown labels, if these are to be skipped; one is needed."""
        pairs = zip(typed, labels, strict=True)
        unknown = [text for text, label in pairs if not self._choice.knows(label)]
        if not unknown or len(typed) == 1:
            return typed
        if not self.skip_unknown:
            raise DataError(
                f"the model does not know {unknown[0]!r}: correct it, or pass --skip-unknown"
            )
        if len(unknown) == len(typed):
            raise DataError(f"the model knows none of {', '.join(map(repr, typed[:5]))}")
        remark(f"ignored, since the model does not know them: {', '.join(unknown)}")
        return [text for text in typed if text not in unknown]

    def filters(self, typed: Filters) -> dict[str, Any]:
        """The filters that were specified, as options of a question."""
        filters: dict[str, Any] = {"min_count": typed.min_count, "where": typed.where}
        filters = {name: decode_letters(each) for name, each in filters.items() if each is not None}
        if typed.exclude:
            filters["exclude"] = [self.find(label) for label in typed.exclude]
        return filters

    def context(self, members: list[str]) -> Any:
        """`beer=2 chips` as amounts; words of a text keep their order."""
        if hasattr(self.model, "spec") and self.model.spec.context.reads_text:
            words = decode_letters([word for member in members for word in member.split()])
            return [self.find(word) for word in self._known(words, words)]
        amounts: dict[Any, float] = {}
        members = decode_letters(members)
        for member in self._known(members, [self._amount(member)[0] for member in members]):
            typed, amount = self._amount(member)
            label = self.find(typed)
            amounts[label] = amounts.get(label, 0.0) + amount
        return amounts

    def _amount(self, member: str) -> tuple[str, float]:
        """Label and amount: a label that contains an equals sign comes before `label=amount`."""
        label, sign, number = member.rpartition("=")
        if not sign or member in self.entities:
            return member, 1.0
        part_of_label, known = self._choice.knows(member), self._choice.knows(label)
        amount = _number(number)
        if part_of_label and known and amount is not None and label not in self.entities:
            raise DataError(
                f"{member!r} is ambiguous: it may be part of a label, or {number} of {label!r}; "
                "write the whole label"
            )
        if amount is None and known and not part_of_label:
            raise DataError(
                f"{member!r}: what follows the equals sign must be a number, as in milk=2 or "
                "milk=0.5"
            )
        # What is not known is reported as it was typed.
        return (member, 1.0) if amount is None or not known else (label, amount)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read_evidence(path: Path | None, model: FittedEmbedding, layout: Layout) -> Any:
    """The data behind a question, or None."""
    if path is None:
        return None
    from efemb.cli._inputs import Reading

    # Items that are bought alone count, too: they are evidence for substitutes.
    options: dict[str, Any] = {"min_count": 1, "min_items": 1, "progress": True, "say": remark}
    return Reading(layout, **options).read_for(path, model)


def open_pair_question(
    path: Path,
    items: list[str],
    filters: Filters,
    data: Path | None,
    layout: Layout,
    *,
    skip_unknown: bool,
) -> tuple[FittedEmbedding, Any, dict[str, Any]]:
    """A saved model, the items in question, and options of a question about pairs."""
    model = open_model(path)
    labels = Labels(model, skip_unknown=skip_unknown)
    query = labels.query(items)
    evidence = read_evidence(data, model, layout)
    return model, query, {**labels.filters(filters), "data": evidence}
