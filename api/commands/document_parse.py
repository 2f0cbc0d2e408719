"""What `pagemill parse` does: reads in a parser process as an executor does, and hands the result to be shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import get_args

import trio
import typer

from api.apps.dataset_requests import CreateDataset
from api.commands import parse_output
from api.commands.options import err, is_utf8, out, printable, say
from api.commands.parse_output import Reading
from api.commands.spooled_chunks import SpooledChunks
from api.db.services.parser_defaults import parser_config
from api.db.services.task_plan import chunk_settings, read_options
from api.db.services.task_requests import BadRange
from common.errors import AttemptFailed, BadPage, InvalidInput, PagemillError, ParserLost, UnreadableFile
from common.settings import Settings
from rag.flow.chunk import ChunkSettings
from rag.flow.render import to_html, to_markdown
from rag.flow.split import range_text, split
from rag.parser.blocks import FileKind, Profile, ReadOptions, Unit
from rag.svr.block_pool import BlockPool
from rag.svr.parser_pool import Config, ParseJob
from rag.svr.parser_protocol import ParsedChunk
from rag.svr.range_reader import read_range
from rag.utils.embedder import POTION_MAX_TOKENS

METHODS: tuple[str, ...] = get_args(CreateDataset.model_fields["chunk_method"].annotation)
_RANGE = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?")
_MAX_PASSWORD_BYTES = 1024
_BAD_RANGE: tuple[type[PagemillError], ...] = (ParserLost, AttemptFailed, UnreadableFile, BadPage)
_DRAWN = (FileKind.PDF, FileKind.IMAGE)


class Output(StrEnum):
    LISTING = "listing"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


@dataclass(frozen=True)
class Asked:
    file: Path
    pages: tuple[tuple[int, int], ...] = ()
    method: str = "naive"
    chunk_tokens: int = 512
    delimiter: str = "\n"
    password_file: Path | None = None
    ocr: bool = True
    blocks: bool = False
    toc: bool = False
    output: Output = Output.LISTING
    draw: Path | None = None

    @property
    def needs_blocks(self) -> bool:
        return self.blocks or self.draw is not None or self.output in (Output.MARKDOWN, Output.HTML)


def page_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """First and last pages of `3-5,8`; none for an empty text. Raises ValueError for anything else."""
    if not text.strip():
        return ()
    ranges = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        first = int(found[1]) if found else 0
        last = int(found[2]) if found and found[2] else first
        if first < 1 or last < first:
            raise ValueError(f"{printable(text)!r} is no list of pages such as 3-5,8")
        ranges.append((first, last))
    return tuple(ranges)


def run_parse(settings: Settings, asked: Asked) -> bool:
    """Read the file and print it. False if some of its pages could not be read, which are named on stderr.

    Raises a DocumentError or another PagemillError where there is nothing to show."""
    chunking, options = _how(asked, _largest_chunk(settings))
    _require_file(asked.file)
    with closing(SpooledChunks()) as chunks:
        reading = trio.run(_read, settings, asked, chunking, options, chunks)
        if asked.draw is not None:
            _draw(asked, asked.draw, reading, options)
        if asked.draw is None or asked.output is not Output.LISTING:
            _show(asked, reading)
    for bad in reading.failed:
        where = range_text(reading.profile.unit, bad.first, bad.last)
        say(f"pagemill: {where} can't be read: {printable(bad.reason)}", err, "red")
    return not reading.failed


def _largest_chunk(settings: Settings) -> int:
    """What the embedding model takes, which is not loaded for it."""
    return settings.embedding.max_tokens if settings.embedding.url else POTION_MAX_TOKENS


def _how(asked: Asked, max_tokens: int) -> tuple[ChunkSettings, ReadOptions]:
    """As a document with this parser_config is read and cut."""
    if asked.method not in METHODS:
        raise typer.BadParameter(f"{printable(asked.method)!r} is none of {', '.join(METHODS)}", param_hint="--method")
    config = parser_config(asked.method, {"chunk_token_num": asked.chunk_tokens, "delimiter": asked.delimiter})
    if not asked.ocr:
        config["layout_recognize"] = "Plain Text"
    config["pages"] = asked.pages
    if asked.password_file is not None:
        config["password"] = _password(asked.password_file)
    return chunk_settings(asked.method, config, max_tokens), read_options(config)


def _password(path: Path) -> str:
    try:
        with path.open("rb") as file:
            line = file.read(_MAX_PASSWORD_BYTES).split(b"\n", 1)[0].rstrip(b"\r")
        return line.decode()
    except OSError as exc:
        raise InvalidInput(f"the password file {printable(str(path))} can't be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"the password in {printable(str(path))} is not valid UTF-8") from exc


def _require_file(path: Path) -> None:
    shown = printable(str(path))
    if not is_utf8(str(path)):
        raise InvalidInput(f"the name of the file is not valid UTF-8: {shown}")
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(f"{shown} is not a file")
        path.open("rb").close()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise InvalidInput(f"{shown} can't be read: {reason}") from exc


async def _read(
    settings: Settings, asked: Asked, chunking: ChunkSettings, options: ReadOptions, chunks: SpooledChunks
) -> Reading:
    """A cancel, as of Ctrl-C, kills the parser process."""
    async with BlockPool(Config.of(settings), with_blocks=asked.needs_blocks) as parsers:
        with err.status(f"reading {printable(asked.file.name)}") as status:
            profile = await parsers.prepare(asked.file, asked.file.name, options)
            if asked.pages and profile.unit not in (Unit.PAGE, Unit.SLIDE):
                raise InvalidInput(f"{printable(asked.file.name)} has no pages to choose from: leave out --pages")
            reading = Reading(profile, chunks=chunks)
            ranges = _ranges(settings, profile, asked.pages)
            for first, last in ranges:
                status.update(f"reading {range_text(profile.unit, first, last)} of {profile.units}")
                job = ParseJob(profile, first, last, chunking, options)
                chunks.add(await _read_one(parsers, asked.file, job, reading.failed, is_all=len(ranges) == 1))
        reading.blocks = parsers.blocks
    return reading


async def _read_one(
    parsers: BlockPool, file: Path, job: ParseJob, failed: list[BadRange], *, is_all: bool
) -> list[ParsedChunk]:
    """A range of which nothing can be read is a bad one among others; the only one is the file's own error."""
    try:
        read = await read_range(parsers, file, job, _ignore, carefully=False, skip_bad=True)
    except _BAD_RANGE as exc:
        if is_all:
            raise
        failed.append(BadRange(job.from_unit, job.to_unit, exc.code, exc.public_message))
        return []
    failed += read.failed
    return read.chunks


def _ranges(settings: Settings, profile: Profile, pages: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return split(profile, settings.tasks.task_page_size, settings.tasks.task_row_size, pages or None)


def _page_numbers(profile: Profile, pages: Sequence[tuple[int, int]]) -> list[int]:
    """The numbers of the pages that were asked for, each once."""
    return [page + 1 for first, last in split(profile, profile.units, 1, pages or None) for page in range(first, last)]


def _ignore(_: int) -> None:
    """Progress within a range is not shown."""


def _show(asked: Asked, reading: Reading) -> None:
    match asked.output:
        case Output.JSON:
            parse_output.print_as_json(asked.file, reading, blocks=asked.blocks, toc=asked.toc)
        case Output.MARKDOWN:
            typer.echo(to_markdown(reading.profile, reading.blocks), nl=False)
        case Output.HTML:
            typer.echo(to_html(reading.profile, reading.blocks, asked.file.name), nl=False)
        case Output.LISTING if asked.toc:
            parse_output.print_toc(asked.file, reading)
        case Output.LISTING:
            parse_output.print_listing(asked.file, reading, blocks=asked.blocks)


def _draw(asked: Asked, folder: Path, reading: Reading, options: ReadOptions) -> None:
    from api.commands.parse_drawing import draw_pages  # Pillow, which the other outputs don't need

    if reading.profile.kind not in _DRAWN:
        raise InvalidInput(f"--draw: {printable(asked.file.name)} has no pages to draw: only PDFs and pictures have")
    console = out if asked.output is Output.LISTING else err
    pages = _page_numbers(reading.profile, asked.pages)
    for path in draw_pages(asked.file, folder, reading, options.password, pages):
        say(printable(str(path)), console)
