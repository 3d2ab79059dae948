"""Roles of columns, inferred from the words in their names and from their first cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from efemb.data.readers.dialect import MISSING
from efemb.data.vocabulary import column_labels
from efemb.errors import DataError

Sample: TypeAlias = Mapping[str, list[Any]]
Fit: TypeAlias = Literal["sure", "perhaps"]

CLEAN = 0.9  # fraction of a column that must be numbers for it to hold counts
# The last word of a name says what the column is (an order date is a date), unless it is a word
# for an identifier (an order number is an order).
_IDENTIFIERS = (
    *("id", "no", "nr", "num", "number", "code", "key", "ref", "identifier", "uuid"),
    *("nummer", "numero"),
)
_NAMES = ("description", "title", "name", "bezeichnung", "descripcion", "designation")
_NUMBER_OF = ("n", "num", "no", "number", "count", "total")
_SOLD = ("sold", "bought", "ordered", "purchased")
# Names of columns of transactions, the most specific first; without accents. Exports of shops
# are often in the local language.
_BASKETS = (
    *("basket", "cart", "invoice", "order", "transaction", "trip", "receipt", "bill", "session"),
    *("ticket", "warenkorb", "bestell", "bestellung", "rechnung", "rechnungs", "beleg", "bon"),
    *("kassenbon", "panier", "facture", "commande", "pedido", "factura", "ordine", "scontrino"),
)
_ITEMS = (
    *("product", "item", "article", "movie", "sku", "stock"),
    *("artikel", "produkt", "produit", "producto", "articulo", "prodotto", "articolo", "produto"),
)
_COUNTS = (
    *("quantity", "qty", "count", "units", "amount", "number", "rating", "pieces", "pcs"),
    *("menge", "anzahl", "stuckzahl", "quantite", "qte", "cantidad", "unidades", "quantita"),
    *("quantidade", "aantal"),
)
_USERS = (
    *("customer", "user", "household", "client", "member"),
    *("kunde", "kunden", "haushalt", "cliente", "utilisateur"),
)
_WHOLE = ("amount", "number")  # with fractions, these are money or measurements
# Splits orderId and SKUCode, but not SKUs.
_CAMEL = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\d_A-Z])(?![A-Z]s(?![a-z]))")
_WORDS = re.compile(r"[^\W\d_]+")
# How pandas names an unnamed index: in CSV, when read back from CSV, in Parquet.
_WRITTEN = re.compile(r"|Unnamed: 0(\.\d+)?|__index_level_\d+__")
COUNTERS = (["index"], ["level_0"])
ROW_NAMES = (["id"], ["row"], ["time"], ["timestamp"], ["frame"])  # last words of columns
_FEW_ROWS = 3  # with fewer, distinct values mean nothing
_VARIED = 0.1  # minimum share of groups whose lines differ for a column not to describe the group
_USUAL_COUNT = 12  # a dozen: a column with a larger median holds prices, dates or codes


@dataclass(frozen=True)
class Role:
    """Names of a column (`nouns`), and the words that may come `before` and `after` them."""

    nouns: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


BASKET = Role(_BASKETS, before=_BASKETS + _USERS, after=_IDENTIFIERS)
ITEM = Role(_ITEMS, before=_ITEMS + _BASKETS, after=_IDENTIFIERS + _NAMES)
USER = Role(_USERS, after=(*_IDENTIFIERS, "name"))
COUNT = Role(_COUNTS, before=(*_NUMBER_OF, "of", *_ITEMS), after=_SOLD)


def candidates(sample: Sample, role: Role, but: Sequence[str | None]) -> dict[Fit, list[str]]:
    """Columns whose names fit `role`, the best first, and those that may fit."""
    by_fit: dict[Fit, list[str]] = {"sure": [], "perhaps": []}
    for name, values in sample.items():
        fit = None if name in but else _match(words(name), role)
        if fit is not None and (role is not COUNT or _are_counts(name, values)):
            by_fit[fit].append(name)
    by_fit["sure"].sort(key=lambda name: _rank(name, sample[name], role))
    return by_fit


def not_counts(sample: Sample, but: Sequence[str | None]) -> tuple[str, Any] | None:
    """A column whose name fits counts, and its first cell that is not a number."""
    for name, values in sample.items():
        if name not in but and _match(words(name), COUNT) == "sure":
            wrong = [value for value in known(values) if not is_number([value])]
            if wrong:
                return name, wrong[0]
    return None


def rivals(columns: Sequence[str], sample: Sample, role: Role) -> list[str]:
    """Columns that fit as well as the best one but hold different values."""
    if not columns:
        return []
    best = _rank(columns[0], sample[columns[0]], role)[:2]
    equal = [name for name in columns[1:] if _rank(name, sample[name], role)[:2] == best]
    alike = list.__eq__ if role is COUNT else _are_one_to_one
    return [name for name in equal if not alike(sample[columns[0]], sample[name])]


def words(name: str) -> list[str]:
    """The words of a name in lower case, without accents or plural; `orderid` is taken apart.

    >>> words("InvoiceNo"), words("orderid"), words("orderdate"), words("SKUs of 2"), words("s1")
    (['invoice', 'no'], ['order', 'id'], ['orderdate'], ['sku', 'of'], ['s'])
    >>> words("Quantité"), words("Bestellnummer")
    (['quantite'], ['bestell', 'nummer'])
    """
    plain = unicodedata.normalize("NFKD", _CAMEL.sub(" ", name))
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    word_runs = [word_run.lower() for word_run in _WORDS.findall(plain)]
    return [word for word_run in word_runs for word in _split_noun(word_run)]


def _split_noun(word_run: str) -> list[str]:
    for noun in (*_BASKETS, *_ITEMS, *_COUNTS, *_USERS):
        if not word_run.startswith(noun):
            continue
        tail = word_run.removeprefix(noun)
        if tail in ("", "s"):
            return [noun]
        if tail in _IDENTIFIERS + _NAMES:
            return [noun, tail]
    return [word_run]


def _match(parts: list[str], role: Role) -> Fit | None:
    """Whether a column with such a name fits `role`."""
    if role is ITEM and len(parts) == 1 and parts[0] in _NAMES:
        return "sure"
    number_of = len(parts) > 1 and parts[0] in _NUMBER_OF
    if role is COUNT and number_of and parts[-1] in _ITEMS:
        return "sure"
    unmatched = list(parts)
    while len(unmatched) > 1 and unmatched[-1] in role.after:
        unmatched.pop()
    if not unmatched or unmatched[-1] not in role.nouns or (number_of and role is not COUNT):
        return None
    # Stock alone is the inventory; an order number is not a number of orders.
    if parts == ["stock"] or (unmatched[-1] == "number" and len(parts) > 1):
        return None
    return "sure" if set(unmatched[:-1]) <= set(role.before) else "perhaps"


def _rank(name: str, values: list[Any], role: Role) -> tuple[int, int, int]:
    """Sort key, best first: columns with more than one value; for items, names before codes."""
    terms = words(name)
    noun = next((i for i, noun in enumerate(role.nouns) if noun in terms), len(role.nouns))
    if role is ITEM:
        # A column `name` is that of the item only if no other column is.
        named = [i for i, word in enumerate(_NAMES) if terms[-1] == word and terms != ["name"]]
        return int(is_number(values)), min(named, default=len(_NAMES)), noun
    doubtful = "basket" not in terms if role is BASKET else terms[-1] in (*_WHOLE, "rating")
    return int(len(set(values)) < 2), int(doubtful), noun


def _are_one_to_one(left: list[Any], right: list[Any]) -> bool:
    pairs = set(zip(left, right, strict=True))
    return len(pairs) == len(set(left)) == len(set(right))


def _are_counts(name: str, values: list[Any]) -> bool:
    """Whether nearly all known values are numbers: real files are not clean."""
    there = known(values)
    numbers = [float(value) for value in there if is_number([value])]
    are_whole = words(name)[-1] not in _WHOLE or all(number.is_integer() for number in numbers)
    return bool(there) and len(numbers) > CLEAN * len(there) and are_whole


def known(values: Sequence[Any]) -> list[Any]:
    """The values that are not missing."""
    return [
        value for value in values if value is not None and str(value).strip().lower() not in MISSING
    ]


def is_number(values: Sequence[Any]) -> bool:
    """Whether the values that are not missing are numbers."""
    try:
        return bool(np.isfinite(np.array(known(values), dtype=np.float64)).any())
    except (TypeError, ValueError):
        return False


def index_names(header: Sequence[Any], aside: Sequence[str]) -> list[str]:
    """Columns whose names mark an index; an empty name counts only in the first column."""
    written = [
        name
        for column, name in enumerate(header)
        if isinstance(name, str) and _WRITTEN.fullmatch(name) and (name or column == 0)
    ]
    # A table that has only such columns is not a table with an index.
    return [
        name for name in dict.fromkeys(written) if name not in aside and len(header) > len(written)
    ]


def noted_index(source: Any, header: Sequence[Any], aside: Sequence[str], name: str) -> list[str]:
    """Columns of a pyarrow table that pandas recorded as its index."""
    try:
        notes = getattr(getattr(source, "schema", None), "pandas_metadata", None)
        names = list(notes.get("index_columns", ())) if isinstance(notes, dict) else []
    except (ValueError, TypeError) as error:  # not JSON, or not a list
        raise DataError(
            f"{name}: the index that pandas recorded is damaged ({error}); write the table again, "
            "or drop the record with table.replace_schema_metadata()"
        ) from error
    present = [name for name in names if isinstance(name, str) and name in header]
    return [name for name in present if name not in (*aside, *index_names(header, aside))]


def names_rows(header: Sequence[Any], cells: Sequence[Any]) -> bool:
    """Whether the first of several columns, with these cells, identifies the rows by its name."""
    if len(header) < 3 or not isinstance(header[0], str):
        return False
    terms = words(header[0])
    named = terms[-1:] in ROW_NAMES or any(_match(terms, role) == "sure" for role in (BASKET, USER))
    there = known(cells)
    return named and len(cells) == len(there) == len(set(there))


def check_row_names(header: Sequence[Any] | None, first: Any, source: str) -> None:
    """Reject a table whose first column, with the values `first`, identifies the rows."""
    cells = np.asarray(first).ravel().tolist()
    if header is None or len(cells) < _FEW_ROWS or not names_rows(header, cells):
        return
    name = header[0]
    raise DataError(
        f"{source}: column {name!r} has another value in every row, so it seems to name the rows "
        f"and not to be an item; pass efemb.read_matrix(table, row_labels={name!r}), drop it, or "
        "pass entities=list(table.columns) if it is an item"
    )


def entity_columns(values: Any) -> list[Any] | None:
    """Names of the columns of a frame, none of which may identify the rows."""
    if not hasattr(type(values), "__array__"):  # a lazy frame has no values
        return None
    labels = column_labels(values)
    if labels:
        first = values[labels[0]]
        if getattr(first, "ndim", 1) == 1:
            check_row_names(labels, first, "the table")
    return labels


def choose_columns(
    sample: Sample, named: Mapping[str, str | None], file: Path
) -> tuple[str, str, str | None] | None:
    """Columns of baskets, items and counts; None unless there are columns for the first two.

    A table of numbers may be a matrix, where only unambiguous names count.
    """
    basket, item, count = (named[role] for role in ("basket", "item", "count"))
    in_doubt = any(named.values()) or not all_numbers(sample)
    baskets = _choices(sample, BASKET, basket, (item, count), in_doubt)
    items = _choices(sample, ITEM, item, (basket, count, *baskets[:1]), in_doubt)
    if not baskets and items:
        baskets = _choices(sample, USER, None, (item, count, *items[:1]), in_doubt)
    if not baskets or not items:
        return None
    if len(baskets) > 1 or len(items) > 1:
        raise _ambiguity_error(file, sample, {"basket": baskets, "item": items})
    if count is None:
        counts = _choices(sample, COUNT, None, (*baskets, *items), in_doubt)
        counts = counts or 2 * _may_be_counts(sample, baskets[0], items[0])
        if len(counts) > 1:
            raise _ambiguity_error(file, sample, {"count": counts})
        return baskets[0], items[0], counts[0] if counts else None
    return baskets[0], items[0], None if count == "none" else count


def _choices(
    sample: Sample, role: Role, named: str | None, but: Sequence[str | None], in_doubt: bool
) -> list[str]:
    """The column for a role; several (or one twice) if the user must choose."""
    if named is not None:
        return [named]
    by_fit = candidates(sample, role, but)
    if by_fit["sure"]:
        return [by_fit["sure"][0], *rivals(by_fit["sure"], sample, role)]
    return by_fit["perhaps"] * 2 if in_doubt else []


def _may_be_counts(sample: Sample, basket: str, item: str) -> list[str]:
    """Columns of small whole numbers that differ within baskets and within items.

    Stores, weeks and customers are the same in all lines of a basket, departments and pack sizes
    in all lines of an item, and a running number never repeats within a basket.
    """
    columns = []
    for name, values in sample.items():
        numbers = np.array([float(value) if is_number([value]) else 0.0 for value in values])
        whole_numbers = numbers[(numbers == np.round(numbers)) & (numbers != 0)]
        if name in (basket, item) or len(whole_numbers) <= CLEAN * len(numbers):
            continue
        in_baskets, in_items = (_cells_by(sample[key], values) for key in (basket, item))
        running = all(len(set(cells)) == len(cells) for cells in in_baskets)
        small = 1 <= np.median(whole_numbers) <= _USUAL_COUNT
        if small and not running and _often_differ(in_baskets) and _often_differ(in_items):
            columns.append(name)
    return columns


def _cells_by(keys: list[Any], values: list[Any]) -> list[list[Any]]:
    """The cells of each key that occurs in several lines."""
    groups: dict[Any, list[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return [cells for cells in groups.values() if len(cells) > 1]


def _often_differ(groups: list[list[Any]]) -> bool:
    """Whether the cells of a group often differ, so that they are not a property of the group."""
    return sum(len(set(cells)) > 1 for cells in groups) > _VARIED * len(groups)


def _ambiguity_error(file: Path, sample: Sample, roles: Mapping[str, Sequence[str]]) -> DataError:
    unclear = {role: list(dict.fromkeys(names)) for role, names in roles.items() if len(names) > 1}
    questions = [
        f"is {' or '.join(map(repr, names))} the {role}?" for role, names in unclear.items()
    ]
    options = " and ".join(f"{role}= (--{role})" for role in unclear)
    none = '; "none" counts each line as 1' if "count" in unclear else ""
    return DataError(
        f"{file}: {' '.join(questions)} Name it with {options}{none}; there are {', '.join(sample)}"
    )


def all_numbers(sample: Sample) -> bool:
    """Whether every column that is not empty holds numbers."""
    filled = [values for values in sample.values() if known(values)]
    return bool(filled) and all(is_number(values) for values in filled)


def numbers_rows(sample: Sample) -> bool:
    """Whether the name of the first of several numeric columns says that it numbers the rows."""
    first = next(iter(sample))
    return names_rows(list(sample), sample[first])


def labels_rows(sample: Sample) -> bool:
    """Whether a first column of distinct texts is followed by numbers, as in a pivot table."""
    first, *further = sample
    names = known(sample[first])
    numbers = {name: sample[name] for name in further}
    different = len(names) == len(sample[first]) == len(set(map(str, names)))
    if not different or len(further) < 2 or not all_numbers(numbers):
        return False
    # Order or product numbers mean transactions, and so does a first line like the others.
    coded = any(candidates(numbers, role, ())["sure"] for role in (BASKET, ITEM))
    return not coded and not all(name in map(str, sample[name]) for name in further)
