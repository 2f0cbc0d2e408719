"""Commands that work with documents: ingest, search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.commands.options import DEFAULT_DATA, DataOption, JsonOption, require_utf8, settings_of

FilesArgument = Annotated[list[Path], typer.Argument(help="Files to ingest.", show_default=False)]


def ingest(
    files: FilesArgument,
    dataset: Annotated[str, typer.Option(help="Name of the dataset; made if there is none.")],
    data: DataOption = DEFAULT_DATA,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the files are searchable.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Upload files into a dataset and parse them. Exit code 1 if any fails, or if Pagemill is not running."""
    from api.commands.document_ingest import run_ingest

    require_utf8("the dataset's name", dataset)
    if not run_ingest(settings_of(data), files, dataset, wait=wait, as_json=as_json):
        raise typer.Exit(1)


def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    dataset: Annotated[str | None, typer.Option(help="Name of the dataset; all of them by default.")] = None,
    data: DataOption = DEFAULT_DATA,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Most hits to show.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each hit stands where it does.")] = False,
    rerank: Annotated[bool, typer.Option("--rerank", help="Let the reranker of the settings order the hits.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the chunks that answer a question. Words in quotes must stand in a chunk as they are."""
    from api.commands.document_search import run_search

    require_utf8("the question", question)
    require_utf8("the dataset's name", dataset or "")
    run_search(settings_of(data), question, dataset, limit=limit, explain=explain, rerank=rerank, as_json=as_json)
