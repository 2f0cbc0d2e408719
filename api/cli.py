"""`pagemill`: the command line. Puts the commands together and turns errors into a line and an exit code."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from api.commands import documents, index, inspection, parse, processes, tasks, tokens
from api.commands.options import err, say
from common.errors import PagemillError, SettingsError

app = typer.Typer(
    name="pagemill",
    help="Documents in, searchable chunks out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(processes.up)
app.command()(processes.server)
app.command()(processes.executor)
app.command()(processes.indexer)
app.command()(processes.reload)
app.command()(inspection.status)
app.command()(inspection.config)
app.command()(inspection.doctor)
app.command()(documents.ingest)
app.command()(documents.search)
app.command()(parse.parse)
app.add_typer(tokens.app, name="token")
app.add_typer(tasks.app, name="tasks")
app.add_typer(index.app, name="index")


def _print_version(asked: bool) -> None:
    if asked:
        from common.version import VERSION

        typer.echo(f"pagemill {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Documents in, searchable chunks out."""


def main() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a document may hold what the terminal's encoding does not
    try:
        app()
    except PagemillError as exc:
        say(f"pagemill: {exc.public_message}", err, "red")
        sys.exit(2 if isinstance(exc, SettingsError) else 1)


if __name__ == "__main__":
    main()
