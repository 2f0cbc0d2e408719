"""How `pagemill parse` shows what it read: a listing for people, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import typer
from rich.padding import Padding
from rich.text import Text

from api.commands.options import out, print_json_object, printable
from api.db.services.task_requests import BadRange
from rag.flow.chunk import Chunk
from rag.flow.contents import Entry, table_of_contents
from rag.parser.blocks import Block, BlockKind, Profile, Unit

_INDENT = (0, 0, 1, 4)


class Chunks(Protocol):
    """In the order of the file, gone through as often as one likes."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Chunk]: ...


@dataclass
class Reading:
    """What was read of a file. `failed` are the units that could not be."""

    profile: Profile
    blocks: list[Block] = field(default_factory=list)
    chunks: Chunks = ()
    failed: list[BadRange] = field(default_factory=list)


def print_listing(file: Path, reading: Reading, *, blocks: bool) -> None:
    out.print(Text(summary(file, reading), "bold"), soft_wrap=True)
    out.print()
    unit = reading.profile.unit
    items: Iterable[Block | Chunk] = reading.blocks if blocks else reading.chunks
    number = 0
    for number, item in enumerate(items, start=1):
        facts = _block_facts(item) if isinstance(item, Block) else _chunk_facts(item)
        words = [_count(item.page, unit), *facts]
        out.print(Text.assemble((f"{number}", "bold cyan"), "  ", (" · ".join(filter(None, words)), "dim")))
        _print_text(_shown(item.text))
    if not number:
        out.print("nothing in it is text")


def _print_text(text: str) -> None:
    """Folded to fit a terminal; a program gets lines as they are."""
    if out.is_terminal:
        out.print(Padding(Text(text), _INDENT))
    else:
        typer.echo("".join(f"    {line}".rstrip() + "\n" for line in text.split("\n")))


def summary(file: Path, reading: Reading) -> str:
    """One line: the name, what it is, how much of it there is, and what it calls itself."""
    profile = reading.profile
    parts = [f"{printable(file.name)}: {profile.kind.value.replace('_', ' ')}"]
    if profile.unit is not Unit.WHOLE:
        parts.append(f"{profile.units} {profile.unit.value}{'' if profile.units == 1 else 's'}")
    if profile.title:
        parts.append(f"“{printable(profile.title)}”")
    known = msgspec.structs.asdict(profile)
    parts += [f"{key} {printable(str(known[key]))}" for key in ("author", "language", "encoding") if known.get(key)]
    parts.append(f"{len(reading.chunks)} chunk{'' if len(reading.chunks) == 1 else 's'}")
    return ", ".join(parts)


def print_toc(file: Path, reading: Reading) -> None:
    out.print(Text(summary(file, reading), "bold"), soft_wrap=True)
    out.print()
    entries = _toc(reading)
    for entry in entries:
        facts = " · ".join(filter(None, (_count(entry.page, reading.profile.unit), f"chunk {entry.chunk}")))
        line = Text.assemble("    " * (entry.level - 1), printable(entry.title), "  ", (facts, "dim"))
        out.print(line, soft_wrap=True)
    if not entries:
        out.print("nothing in it is a heading")


def _toc(reading: Reading) -> list[Entry[int]]:
    """With the numbers of chunks, from 1. A heading is told with the chunk that is found for it: a child's, if any."""
    numbered = enumerate(reading.chunks, start=1)
    return list(table_of_contents((number, chunk.contents) for number, chunk in numbered if not chunk.is_parent))


def print_as_json(file: Path, reading: Reading, *, blocks: bool, toc: bool = False) -> None:
    print_json_object(facts_of(file, reading, blocks=blocks, toc=toc))


def facts_of(file: Path, reading: Reading, *, blocks: bool, toc: bool = False) -> dict[str, Any]:
    """Places are [page, left, right, top, bottom] in points from the top left of the page. What there may be much
    of is an iterator."""
    return {
        "file": printable(str(file)),
        "profile": msgspec.to_builtins(reading.profile),
        **({"toc": [entry._asdict() for entry in _toc(reading)]} if toc else {}),
        **({"blocks": map(_block_json, reading.blocks)} if blocks else {"chunks": map(_chunk_json, reading.chunks)}),
        "failed": [
            {"first": bad.first + 1, "last": bad.last, "code": bad.code, "reason": bad.reason} for bad in reading.failed
        ],
    }


def _chunk_json(chunk: Chunk) -> dict[str, Any]:
    """Without the search terms, which are the index's own."""
    return {name: msgspec.to_builtins(getattr(chunk, name)) for name in Chunk.__struct_fields__}


def _block_json(block: Block) -> dict[str, Any]:
    return {**msgspec.to_builtins(block), "boxes": msgspec.to_builtins(block.boxes)}


def _block_facts(block: Block) -> tuple[str, ...]:
    kind = f"{block.kind.value} {block.level}" if block.kind is BlockKind.HEADING else block.kind.value
    size = ""
    if block.table is not None:
        size = f"{len(block.table.rows)} rows"
    part = printable(block.picture.part) if block.picture is not None else ""
    return kind.replace("_", " "), size, part


def _chunk_facts(chunk: Chunk) -> tuple[str, ...]:
    path = " > ".join(printable(" ".join(heading.split())) for heading in chunk.headings)
    tokens = f"{chunk.tokens} token{'' if chunk.tokens == 1 else 's'}"
    return path, tokens, "" if chunk.kind == "text" else chunk.kind


def _count(page: int, unit: Unit) -> str:
    return "" if unit is Unit.WHOLE else f"{unit.value} {page}"


def _shown(text: str) -> str:
    """Line by line, without what a terminal would obey."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))
