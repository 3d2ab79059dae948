"""Reading data for a command: what is not specified is inferred and reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import efemb
from efemb.cli._arguments import Layout
from efemb.cli._output import Say
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.dataset import Dataset
    from efemb.data.readers.guess import Guess
    from efemb.data.vocabulary import Vocabulary

CUSTOMER = "customer_column"  # report entry: a column that seems to identify the customer
TEXT_ONLY = ("cbow", "skip-gram", "poisson-text")
_CONTENTS = {
    "baskets": "transactions",
    "matrix": "a matrix",
    "text": "text",
    "recording": "a recording",
}


@dataclass(frozen=True)
class Reading:
    """How to read a file; `say` reports everything that was inferred."""

    layout: Layout
    positions: Path | None = None
    min_count: int = 5
    strict: bool = False
    progress: bool = False
    say: Say = print
    min_items: int = 2  # per basket: a single item has no context
    net_returns: bool = False
    rows: Sequence[str] = ()  # columns with one value per basket
    price: str | None = None
    week: str | None = None
    features: Path | None = None
    transpose: bool = False  # a matrix of entities x rows
    lower: bool = False  # words of a text

    def read(self, source: Path | Sequence[Path], model: str | None = None) -> Dataset | Corpus:
        """Read a file, or several."""
        paths = [source] if isinstance(source, Path) else list(source)
        path = paths[0]
        guess = self._guess(path, model, len(paths))
        self._check_options(path, guess.kind)
        if len(paths) > 1 and guess.kind not in ("baskets", "text"):
            raise ParameterError(
                f"{path.name} is {_CONTENTS[guess.kind]}: only files of transactions or of text "
                "can be read together; pass a single file"
            )
        if guess.kind == "recording":
            return efemb.read_suite2p(path, progress=self.progress)
        if guess.kind == "text":
            return self._read_text(paths if len(paths) > 1 else path, min_count=self.min_count)
        if guess.kind == "baskets":
            return self._read_baskets(paths if len(paths) > 1 else path, guess)
        from efemb.data.readers.column_roles import is_number

        data = self._read_matrix(path, guess)
        if guess.kind == "matrix" and data.entities is not None and is_number(list(data.entities)):
            first = ", ".join(map(str, data.entities.labels[:3]))
            self.say(f"the first line names the columns: {first}, ...")
        if "positions" in data.report:
            self.say(f"positions: {data.report['positions']}")
        return data

    def _read_text(self, source: Path | Sequence[Path], **words: Any) -> Corpus:
        options: dict[str, Any] = {"encoding": self.layout.encoding, "progress": self.progress}
        return efemb.read_text(source, lower=self.lower, **options, **words)

    def _read_matrix(self, path: Path, guess: Guess) -> Dataset:
        options: dict[str, Any] = {"positions": self.positions, "encoding": self.layout.encoding}
        if not self.transpose:
            return efemb.read_matrix(path, row_labels=guess.row_labels, **options)
        data = efemb.read_matrix(path, row_labels=guess.row_labels, encoding=self.layout.encoding)
        return efemb.read_matrix(data.values.T, entities=data.row_labels, **options)

    def columns(self, path: Path | None) -> dict[str, Any]:
        """Names of the columns of transactions, inferred from a file if they are not specified."""
        if path is None:  # remote files are not examined
            if not self.layout.basket or self.layout.item is None:
                raise ParameterError("--basket and --item name the columns of remote files")
            return {**self.layout.columns, "header": self.layout.header_names}
        guess = self._guess(path, None)
        if guess.kind != "baskets" or guess.lines:
            raise ParameterError(
                f"{path.name} is {_CONTENTS[guess.kind]}: a store of shards is made from tables "
                "with one line per item of a basket: write them so, or fit in memory, without "
                "--store, --cluster and --checkpoint"
            )
        columns = {name: getattr(guess, name) for name in self.layout.columns}
        return {**columns, "header": self.layout.header_names}

    def read_for(self, path: Path, model: Any) -> Dataset | Corpus:
        """Read a file and put its columns in the order of a model's items."""
        embeds = hasattr(model, "spec")  # otherwise a baseline, a blend or a model of baskets
        vocabulary = model.vocabulary if embeds else model.vocabulary_
        if embeds and model.spec.context.reads_text:
            self._check_options(path, "text")
            return self._read_text(path, vocabulary=vocabulary)
        data = replace(self, rows=needed_columns(model)).read(path)
        if not isinstance(data, efemb.Dataset):
            raise ParameterError(f"{path} is text, but the model was fitted to numbers")
        if vocabulary is None or data.entities == vocabulary:
            return data
        if data.entities is None:
            data = number_columns(data, vocabulary)
            if data.entities is None:
                return data
        return self._align(data, vocabulary)

    def _align(self, data: Dataset, vocabulary: Any) -> Dataset:
        from efemb.data.align import aligned

        rearranged = aligned(data, vocabulary)
        n_unknown = rearranged.report["unknown_entities"]
        if n_unknown:
            self.say(f"dropped {_plural(n_unknown, 'item')} unknown to the model")
        return rearranged

    def _check_options(self, path: Path, kind: str) -> None:
        """Reject options that do not apply to this kind of file instead of ignoring them."""
        if kind != "baskets" and (any(self.layout.columns.values()) or self.layout.header):
            raise ParameterError(
                f"{path.name} is {_CONTENTS[kind]}: --basket, --item, --count and --header apply "
                "to a table of transactions"
            )
        if kind != "baskets" and (self.rows or self.week or self.price or self.features):
            raise ParameterError(
                f"{path.name} is {_CONTENTS[kind]}: --row, --week, --price and --features apply to "
                "a table of transactions"
            )
        if kind != "baskets" and self.net_returns:
            raise ParameterError(f"{path.name} is {_CONTENTS[kind]}, which has no returns")
        if kind != "text" and self.lower:
            raise ParameterError(f"--lower applies to text, but {path.name} is {_CONTENTS[kind]}")
        for option, value in {"--positions": self.positions, "--transpose": self.transpose}.items():
            if kind != "matrix" and value:
                raise ParameterError(
                    f"{option} applies to an array, but {path.name} is {_CONTENTS[kind]}"
                )

    def _guess(self, path: Path, model: str | None, n_files: int = 1) -> Guess:
        from efemb.data.readers.guess import Guess, guess_contents

        if model in TEXT_ONLY:
            return Guess("text", f"{model} is a model of text")
        columns = self.layout.columns
        if self.layout.layout == "lines" and (any(columns.values()) or self.layout.header):
            raise ParameterError(
                "--layout lines reads a basket per line, which has no columns: leave out "
                "--basket, --item, --count and --header"
            )
        columns |= {"layout": self.layout.layout, "header": self.layout.header_names}
        guess = guess_contents(path, **columns, encoding=self.layout.encoding)
        more = "" if n_files == 1 else f" (first of {n_files:,} files)"
        self.say(f"{path.name}{more}: {_CONTENTS[guess.kind]}; {guess.why}")
        return guess

    def _read_baskets(self, source: Any, guess: Guess) -> Dataset:
        columns: dict[str, Any] = {"layout": "lines", "separator": guess.separator}
        if not guess.lines:
            columns = {name: getattr(guess, name) for name in self.layout.columns}
            columns |= {"header": self.layout.header_names, **self._shop_options()}
        data = efemb.read_baskets(
            source,
            **columns,
            returns="net" if self.net_returns else "bad",
            min_count=self.min_count,
            min_items_per_basket=self.min_items,
            on_bad="error" if self.strict else "drop",
            encoding=self.layout.encoding,
            progress=self.progress,
        )
        self._report_dropped(data.report)
        if guess.customer is None or self.rows:
            return data
        return data._replace(data.values, report={**data.report, CUSTOMER: guess.customer})

    def _shop_options(self) -> dict[str, Any]:
        """Options for rows, prices and features, if they were requested."""
        if self.price is not None and self.week is None:
            raise ParameterError("--price needs --week, the column of the week of each line")
        names = [*self.rows, *([] if self.week is None else [self.week])]
        options: dict[str, Any] = {"rows": {name: name for name in names}} if names else {}
        if self.price is not None:
            options["price"] = {"value": self.price, "by": self.week}
        if self.features is not None:
            options["features"] = self.features
        return options

    def _report_dropped(self, report: dict[str, Any]) -> None:
        for reason, number in report.get("bad", {}).items():
            self.say(f"dropped {number:,} of {report['lines']:,} lines: {reason}")
        if "price" in report:
            table = report["price"]
            self.say(
                f"prices: {table['filled']:,} of {table['filled'] + table['observed']:,} items x "
                "weeks without sales have the regular price"
            )
        for name, number in report.get("features", {}).get("missing", {}).items():
            if number:
                self.say(f"feature {name!r} is missing for {_plural(number, 'item')}")
        if repeated := report.get("duplicates_summed"):
            lines = "line names" if repeated == 1 else "lines name"
            self.say(f"{repeated:,} {lines} an item that the basket already has: counts add up")
        if report.get("returned"):
            self.say(f"{report['returned']:,} items of baskets were returned completely")
        # Baskets and items without a usable line, such as an invoice of returns, are included.
        unusable = "without a usable line"
        rare = f"in fewer than {self.min_count} baskets" if self.min_count > 1 else unusable
        small = f"with fewer than {self.min_items} items" if self.min_items > 1 else unusable
        dropped = {
            ("item", rare): report.get("items_dropped", 0),
            ("basket", small): report.get("baskets_dropped", 0),
        }
        texts = [
            f"{_plural(number, noun)} {reason}"
            for (noun, reason), number in dropped.items()
            if number
        ]
        if texts:
            self.say(f"dropped {' and '.join(texts)}")


def drop_unobserved(data: Dataset | Corpus, strict: bool, say: Say) -> Dataset | Corpus:
    """Without columns that have no value at all, such as cells outside the field of view.

    Columns without labels are labeled by their numbers, which other files have as well.
    """
    if strict or isinstance(data, efemb.Corpus) or data.is_sparse:
        return data
    never = np.isnan(data.values).all(axis=0)
    if not never.any() or never.all():
        return data
    labels = data.entities or efemb.Vocabulary(range(data.n_entities))
    first = ", ".join(str(label) for label in labels.take(np.flatnonzero(never)[:5]))
    ellipsis = ", ..." if never.sum() > 5 else ""
    say(f"dropped {_plural(int(never.sum()), 'column')} without any value: {first}{ellipsis}")
    return data._replace(data.values, entities=labels).take_entities(~never)


def number_columns(data: Dataset, known: Vocabulary) -> Dataset:
    """The data with numbers as labels, if the model knows some of as many columns by number.

    Columns behind the last known one must be without any value: more columns are other data.
    """
    numbers = [label for label in known if isinstance(label, int)]
    n_columns = max(numbers, default=-1) + 1
    if len(numbers) < len(known) or data.is_sparse or data.n_entities < n_columns:
        return data
    if not np.isnan(data.values[:, n_columns:]).all():
        return data
    return data._replace(data.values, entities=efemb.Vocabulary(range(data.n_entities)))


def needed_columns(model: Any) -> list[str]:
    """Row columns that a model predicts from."""
    if hasattr(model, "spec"):
        columns = [column for term in model.spec.terms for column in term.columns]
        return list(dict.fromkeys(columns))
    customers = getattr(model, "report_", {}).get("history")
    return [] if customers in (None, "user") else [customers]


def describe_size(data: Dataset | Corpus) -> str:
    """The size of data, in one line.

    >>> from efemb.data.dataset import Dataset
    >>> describe_size(Dataset([[1.5, 2.0]]))
    '1 row x 2 columns'
    """
    if isinstance(data, efemb.Corpus):
        return (
            f"{_plural(data.n_documents, 'document')}, {data.n_tokens:,} words, "
            f"{data.n_entities:,} distinct"
        )
    if data.is_sparse:
        return (
            f"{_plural(data.n_rows, 'basket')} x {_plural(data.n_entities, 'item')}, "
            f"{data.values.nnz:,} entries"
        )
    return f"{_plural(data.n_rows, 'row')} x {_plural(data.n_entities, 'column')}"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
