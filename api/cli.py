"""`pagemill`: the command line. Puts the commands together and turns errors into a line and an exit code."""

from __future__ import annotations

import sys

import typer

from api.commands import documents, inspection, processes, tokens
from api.commands.options import err
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
app.command()(inspection.status)
app.command()(inspection.config)
app.command()(inspection.doctor)
app.command()(documents.ingest)
app.command()(documents.search)
app.add_typer(tokens.app, name="token")


def main() -> None:
    try:
        app()
    except PagemillError as exc:
        err.print(f"pagemill: {exc.public_message}", style="red", markup=False, highlight=False)
        sys.exit(2 if isinstance(exc, SettingsError) else 1)


if __name__ == "__main__":
    main()
