"""Options that many commands share, and how a command prints facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from common.settings import Settings, load

DataOption = Annotated[
    Path,
    typer.Option("--data", envvar="PAGEMILL_DATA", help="Folder of everything this instance keeps."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT_DATA = Path("data")

out = Console()
err = Console(stderr=True)


def settings_of(data: Path) -> Settings:
    return load(data).settings


def print_json(value: object) -> None:
    """Plain JSON, never wrapped or coloured: it is for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    out.print(table)
