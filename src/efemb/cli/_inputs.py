"""Reading data for a command: what is not told is guessed, and what is guessed is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.dataset import Dataset
    from efemb.data.readers.guess import Guess
    from efemb.fitted.embedding import FittedEmbedding

TEXT_ONLY = ("cbow", "skip-gram", "poisson-text")


@dataclass(frozen=True)
class Reading:
    """How to read a file; `say` is told every guess, in words."""

    basket: str | None = None
    item: str | None = None
    count: str | None = None
    encoding: str = "utf-8"
    positions: Path | None = None
    min_count: int = 5
    strict: bool = False
    progress: bool = False
    say: Callable[[str], None] = print
    min_items: int = 2  # in a basket: one item alone has no context

    def read(self, path: Path, model: str | None = None) -> Dataset | Corpus:
        """The data in a file."""
        guess = self._guess(path, model)
        self._check_told(path, guess.kind)
        if guess.kind == "text":
            from efemb.data.readers.text.read import read_text

            return read_text(
                path, min_count=self.min_count, encoding=self.encoding, progress=self.progress
            )
        if guess.kind == "baskets":
            return self._baskets(path, guess)
        from efemb.data.readers.matrix import read_matrix

        options: dict[str, Any] = {"positions": self.positions, "encoding": self.encoding}
        return read_matrix(path, row_labels=guess.row_labels, **options)

    def read_for(self, path: Path, model: FittedEmbedding) -> Dataset | Corpus:
        """The data in a file, in the order of a model's entities."""
        from efemb.data.align import aligned
        from efemb.data.dataset import Dataset
        from efemb.data.readers.text.read import read_text
        from efemb.model.contexts.window import Window

        labels = model.vocabulary
        if isinstance(model.spec.context, Window):
            self._check_told(path, "text")
            return read_text(
                path, vocabulary=labels, encoding=self.encoding, progress=self.progress
            )
        data = self.read(path)
        if not isinstance(data, Dataset):
            raise ParameterError(f"{path} is text, but the model is one of numbers")
        if labels is None or data.entities is None or data.entities == labels:
            return data
        found = aligned(data, labels)
        if found.report["unknown_entities"]:
            self.say(f"left out {found.report['unknown_entities']:,} entities unknown to the model")
        return found

    def _check_told(self, path: Path, kind: str) -> None:
        """Refuse what does not go with the contents of a file, instead of not heeding it."""
        if kind != "baskets" and (self.basket or self.item or self.count):
            raise ParameterError(
                f"{path.name} is {_CONTENTS[kind]}: --basket, --item and --count go with a "
                "table of transactions"
            )
        if kind != "matrix" and self.positions is not None:
            raise ParameterError(
                f"--positions goes with an array, but {path.name} is {_CONTENTS[kind]}"
            )

    def _guess(self, path: Path, model: str | None) -> Guess:
        from efemb.data.readers.guess import Guess, guess_contents

        if model in TEXT_ONLY:
            return Guess("text", f"{model} is a model of text")
        told = {"basket": self.basket, "item": self.item, "count": self.count}
        guess = guess_contents(path, **told, encoding=self.encoding)
        self.say(f"{path.name}: {_CONTENTS[guess.kind]}; {guess.why}")
        return guess

    def _baskets(self, path: Path, guess: Guess) -> Dataset:
        from efemb.data.readers.transactions import read_baskets

        assert guess.basket is not None
        assert guess.item is not None
        data = read_baskets(
            path,
            basket=guess.basket,
            item=guess.item,
            count=guess.count,
            min_count=self.min_count,
            min_items_per_basket=self.min_items,
            on_bad="error" if self.strict else "drop",
            encoding=self.encoding,
            progress=self.progress,
        )
        self._say_dropped(data.report)
        return data

    def _say_dropped(self, report: dict[str, Any]) -> None:
        for reason, number in report.get("bad", {}).items():
            self.say(f"left out {number:,} of {report['lines']:,} lines: {reason}")
        # What has only lines that cannot be used, such as an invoice of returns, is among them.
        unusable = "without a line that can be used"
        rare = f"in fewer than {self.min_count} baskets" if self.min_count > 1 else unusable
        small = f"of fewer than {self.min_items} items" if self.min_items > 1 else unusable
        parts = {
            f"items {rare}": report.get("items_dropped", 0),
            f"baskets {small}": report.get("baskets_dropped", 0),
        }
        told = [f"{number:,} {what}" for what, number in parts.items() if number]
        if told:
            self.say(f"left out {' and '.join(told)}")


def sizes(data: Dataset | Corpus) -> str:
    """How large data are, in a line.

    >>> from efemb.data.dataset import Dataset
    >>> sizes(Dataset([[1.5, 2.0]]))
    '1 rows x 2 columns'
    """
    from efemb.data.corpus import Corpus

    if isinstance(data, Corpus):
        return (
            f"{data.n_documents:,} documents, {data.n_tokens:,} words of a vocabulary of "
            f"{data.n_entities:,}"
        )
    if data.is_sparse:
        return f"{data.n_rows:,} baskets x {data.n_entities:,} items, {data.values.nnz:,} entries"
    return f"{data.n_rows:,} rows x {data.n_entities:,} columns"


_CONTENTS = {"baskets": "transactions", "matrix": "a matrix", "text": "text"}
