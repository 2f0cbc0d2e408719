"""`pagemill parse`: what a file is read as and cut into, with no server, database or queue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.commands.options import DEFAULT_DATA, settings_of

BAD_PAGES = 3


def parse(
    file: Annotated[Path, typer.Argument(help="The file to read.", show_default=False)],
    pages: Annotated[str, typer.Option(help="Pages to read, such as 3-5,8; all by default.")] = "",
    method: Annotated[str, typer.Option(help="Chunk method, as a dataset has it.")] = "naive",
    chunk_tokens: Annotated[int, typer.Option(min=1, max=2048, help="Most tokens of a chunk.")] = 512,
    delimiter: Annotated[str, typer.Option(help="Where a block that is too large is cut.")] = "\n",
    password_file: Annotated[
        Path | None, typer.Option(help="File whose first line opens an encrypted document.", show_default=False)
    ] = None,
    ocr: Annotated[bool, typer.Option("--ocr/--no-ocr", help="Read the text in pictures of pages.")] = True,
    blocks: Annotated[bool, typer.Option("--blocks", help="Show what was read, before it is cut into chunks.")] = False,
    toc: Annotated[
        bool, typer.Option("--toc", help="Show the table of contents; with --json, beside the rest.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the blocks as Markdown.")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="Print the blocks as one HTML page.")] = False,
    draw: Annotated[
        Path | None, typer.Option(help="Folder for pictures of the pages with blocks and chunks in boxes.")
    ] = None,
) -> None:
    """Read a file and cut it into chunks, here and now. Exit code 3 if some pages could not be read."""
    from api.commands.document_parse import Asked, Output, page_ranges, run_parse

    chosen = [
        form
        for form, given in ((Output.JSON, as_json), (Output.MARKDOWN, as_markdown), (Output.HTML, as_html))
        if given
    ]
    if len(chosen) > 1:
        raise typer.BadParameter("only one of --json, --markdown and --html can be given")
    if toc and (as_markdown or as_html):
        raise typer.BadParameter("--toc is a listing of its own, or goes with --json")
    try:
        ranges = page_ranges(pages)
    except ValueError as exc:
        raise typer.BadParameter(str(exc), param_hint="--pages") from exc
    asked = Asked(
        file=file,
        pages=ranges,
        method=method,
        chunk_tokens=chunk_tokens,
        delimiter=delimiter,
        password_file=password_file,
        ocr=ocr,
        blocks=blocks,
        toc=toc,
        output=chosen[0] if chosen else Output.LISTING,
        draw=draw,
    )
    if not run_parse(settings_of(DEFAULT_DATA), asked):
        raise typer.Exit(BAD_PAGES)
