"""Options that many commands share, what they are checked for, and how a command prints facts.

The consoles print text as it is: names of files and keys may look like markup, and mean nothing by it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from common.errors import InvalidInput, SettingsError
from common.settings import Loaded, Settings, load

DataOption = Annotated[
    Path,
    typer.Option("--data", envvar="PAGEMILL_DATA", help="Folder of everything this instance keeps."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT_DATA = Path("data")
NOT_RUNNING = "Pagemill is not running: start it with `pagemill up`"

out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)
# For tables that go to a program: nothing is folded to fit.
_wide = Console(markup=False, emoji=False, highlight=False, width=10_000)


def loaded(data: Path, overrides: Mapping[str, object] | None = None) -> Loaded:
    try:
        folder = data.expanduser().resolve()
    except RuntimeError as exc:  # a loop of links, or `~nobody`
        raise SettingsError(f"--data {printable(str(data))}: {exc}") from exc
    require_utf8("the data folder's path", str(folder))
    return load(folder, overrides=overrides)


def settings_of(data: Path, overrides: Mapping[str, object] | None = None) -> Settings:
    return loaded(data, overrides).settings


def require_utf8(what: str, value: str) -> str:
    """The value. Raises InvalidInput for bytes of the command line that are no text."""
    if not is_utf8(value):
        raise InvalidInput(f"{what} is not valid UTF-8: {printable(value)}")
    return value


def is_utf8(value: str) -> bool:
    """Python keeps bytes that it can't decode as halves of surrogate pairs."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def printable(value: str) -> str:
    """Without what a terminal would obey, and bytes that are no text."""
    return "".join("\ufffd" if unicodedata.category(char) in ("Cc", "Cs") else char for char in value)


def say(text: str, console: Console = out, style: str = "") -> None:
    """One line, folded by the terminal only."""
    console.print(text, style=style, soft_wrap=True)


def print_json(value: object) -> None:
    """Plain JSON, never wrapped or coloured: it is for programs."""
    typer.echo(_as_json(value))


def print_json_object(fields: Mapping[str, object]) -> None:
    """The same for an object of which some values are iterators: each becomes a list, an item at a time."""
    before = "{\n"
    for name, value in fields.items():
        typer.echo(f"{before}  {_as_json(name)}: ", nl=False)
        if isinstance(value, Iterator):
            _print_list(value)
        else:
            typer.echo(_indented(value, 2), nl=False)
        before = ",\n"
    typer.echo("\n}" if fields else "{}")


def _print_list(items: Iterator[object]) -> None:
    before, end = "[", "]"
    for item in items:
        typer.echo(f"{before}\n    {_indented(item, 4)}", nl=False)
        before, end = ",", "\n  ]"
    typer.echo(end if end != "]" else "[]", nl=False)


def _indented(value: object, spaces: int) -> str:
    return _as_json(value).replace("\n", "\n" + " " * spaces)  # no string in it has a line end of its own


def _as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, whole: Collection[str] = ()
) -> None:
    """Cells fold where the terminal is too narrow, but for those of the columns in `whole`."""
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    (out if out.is_terminal else _wide).print(table)
