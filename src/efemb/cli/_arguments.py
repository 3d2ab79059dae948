"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer
from typer.core import TyperCommand

from efemb.errors import ParameterError

Model = Annotated[
    Path, typer.Argument(help="Folder of a saved model.", metavar="MODEL", show_default=False)
]
Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, NPY, NPZ or text file.", metavar="FILE", show_default=False
    ),
]
DataFiles = Annotated[
    list[Path],
    typer.Argument(
        help="CSV, TSV, Parquet, NPY, NPZ or text file, or a suite2p folder. Transactions may be "
        "several files, a quoted pattern or a folder of Parquet files.",
        metavar="FILE",
        show_default=False,
    ),
]
Items = Annotated[
    list[str],
    typer.Argument(help="Items, by label or part of a label.", metavar="ITEM", show_default=False),
]
Members = Annotated[
    list[str],
    typer.Argument(
        help="Items, optionally with amounts: beer=2 chips.",
        metavar="ITEM[=AMOUNT]",
        show_default=False,
    ),
]
MaybeData = Annotated[
    Path | None,
    typer.Option(help="Data that the model was fitted to; adds counts and lift.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Number = Annotated[
    int, typer.Option("--n", "-n", help="Number of items to show.", min=1, metavar="N")
]
Which = Annotated[
    str, typer.Option(help="Vectors to use: auto, rho, alpha or both.", metavar="NAME")
]
MinSupport = Annotated[
    int | None,
    typer.Option(
        help="With --data: only pairs that occur together in at least N baskets.",
        min=0,
        metavar="N",
    ),
]
Direction = Annotated[
    str,
    typer.Option(
        help="given (the item is in the basket) or symmetric (mean of both directions).",
        metavar="NAME",
    ),
]
Rarest = Annotated[
    int,
    typer.Option(
        "--min-count",
        help="Drop items that occur in fewer than N baskets (or words that occur fewer than N "
        "times).",
        min=1,
        metavar="N",
    ),
]
Basket = Annotated[
    list[str] | None,
    typer.Option(
        help="Column that identifies the basket (order, trip, user); repeat if it takes several.",
        metavar="COLUMN",
    ),
]
Item = Annotated[
    str | None, typer.Option(help="Column that identifies the item.", metavar="COLUMN")
]
Count = Annotated[
    str | None,
    typer.Option(help="Column of counts; 'none' counts each line as 1.", metavar="COLUMN"),
]
LayoutName = Annotated[
    str | None,
    typer.Option(
        help="table (a line per item of a basket), lines (a basket per line), matrix or text "
        "(a document per line); by default inferred.",
        metavar="NAME",
    ),
]
Header = Annotated[
    str | None,
    typer.Option(
        help="Names of the columns, for a table without a header: user,item,rating.",
        metavar="NAMES",
    ),
]
Rows = Annotated[
    list[str] | None,
    typer.Option(
        "--row",
        help="Column that identifies the customer, such as household: learn customer vectors and "
        "use purchase histories; repeat for several.",
        metavar="COLUMN",
    ),
]
Week = Annotated[
    str | None, typer.Option(help="Column of the week: learn seasonal effects.", metavar="COLUMN")
]
Price = Annotated[
    str | None,
    typer.Option(
        help="Column of the amount paid per line: learn price elasticities; needs --week.",
        metavar="COLUMN",
    ),
]
Features = Annotated[
    Path | None,
    typer.Option(
        help="Table with one line per item (department, brand): items share vectors by feature.",
        metavar="FILE",
    ),
]
NetReturns = Annotated[
    bool,
    typer.Option(
        "--net-returns", help="Subtract negative counts within a basket instead of dropping them."
    ),
]
SkipUnknown = Annotated[
    bool,
    typer.Option("--skip-unknown", help="Ignore items that the model does not know."),
]
Positions = Annotated[
    Path | None,
    typer.Option(
        help="Coordinates of the columns: NPY, or CSV with columns x, y, z or latitude, longitude.",
        metavar="FILE",
    ),
]
Transpose = Annotated[
    bool,
    typer.Option("--transpose", help="The array is neurons x frames, not frames x neurons."),
]
Lower = Annotated[bool, typer.Option("--lower", help="Text: convert words to lower case.")]
Encoding = Annotated[
    str, typer.Option(help="Text encoding of the file, such as cp1252.", metavar="NAME")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first bad line instead of dropping it.")
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        help="Maximum number of passes; by default that of the model.", min=1, metavar="N"
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, metavar="N")]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 uses every core.", metavar="N")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress progress bars and remarks.")]

# Old spellings, which work until version 0.4.
RENAMED: Final = {"--number": "--n"}


# -- groups of options ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How a file of transactions is laid out; None is inferred from its first lines."""

    basket: Basket = None
    item: Item = None
    count: Count = None
    layout: LayoutName = None
    header: Header = None
    encoding: Encoding = "utf-8"

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, decode_letters(getattr(self, each.name)))

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that were named, and None for the others."""
        return {"basket": self.basket, "item": self.item, "count": self.count}

    @property
    def header_names(self) -> list[str] | None:
        """Names of the columns of a table without a header."""
        return None if self.header is None else [name.strip() for name in self.header.split(",")]


@dataclass(frozen=True)
class Filters:
    """Which items an answer may list."""

    min_count: Annotated[
        int | None, typer.Option(help="Only items that occur at least N times.", min=1, metavar="N")
    ] = None
    where: Annotated[
        str | None, typer.Option(help="Only items whose label contains this text.", metavar="TEXT")
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Exclude this item; repeat for several.", metavar="LABEL"),
    ] = None


def spread_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose groups of options, which are dataclasses, typer sees as single options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        kind = groups[parameter.name]
        options = get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            about: dict[str, Any] = {"default": each.default, "annotation": options[each.name]}
            parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, **about))

    @wraps(command)
    def run(**passed: Any) -> None:
        for name, kind in groups.items():
            passed[name] = kind(**{each.name: passed.pop(each.name) for each in fields(kind)})
        command(**passed)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


class StrictCommand(TyperCommand):
    """A command that rejects a single-valued option that is passed twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check the arguments, then parse them."""
        repeated = find_repeated(args, self)
        if repeated is not None:
            raise ParameterError(f"{repeated} was passed twice, but it takes a single value")
        return super().parse_args(ctx, args)


def decode_letters(value: Any) -> Any:
    """Text, or each text of a sequence, with the letters that were typed.

    If the locale is not UTF-8 (LANG=C), Python keeps other bytes of an argument as surrogates.
    Paths must stay unchanged, or the system would not find the files.

    >>> decode_letters("caf\\udcc3\\udca9"), decode_letters(3)
    ('café', 3)
    """
    if isinstance(value, list | tuple):
        return type(value)(decode_letters(each) for each in value)
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:  # another encoding: unchanged, and reported as unknown
        return value


def find_repeated(arguments: Sequence[str], command: Any) -> str | None:
    """A single-valued option that was passed twice; the last one would win silently."""
    single = {
        name: option.name
        for option in command.params
        if getattr(option, "multiple", True) is False and not getattr(option, "is_flag", False)
        for name in option.opts
    }
    passed: set[str] = set()
    for argument in arguments:
        if argument == "--":  # followed by values, not options
            return None
        name = argument.partition("=")[0]
        if single.get(name) in passed:
            return name
        if name in single:
            passed.add(single[name])
    return None


def replace_old_options(arguments: Sequence[str], warn: Callable[[str], None]) -> list[str]:
    """Arguments with current names of options; `warn` is called for every old one.

    >>> replace_old_options(["similar", "model", "--number=3"], print)
    --number is deprecated and will be removed in version 0.4; use --n
    ['similar', 'model', '--n=3']
    """
    current = list(arguments)
    for index, argument in enumerate(current):
        if argument == "--":  # what follows are values, not options
            break
        name, sign, value = argument.partition("=")
        if name in RENAMED:
            warn(f"{name} is deprecated and will be removed in version 0.4; use {RENAMED[name]}")
            current[index] = RENAMED[name] + sign + value
    return current
