"""pagemill index verify | repair | migrate"""

from __future__ import annotations

from typing import Annotated

import typer

from api.commands.options import DEFAULT_DATA, DataOption, JsonOption, settings_of

app = typer.Typer(help="The index: compare it with the rows, put it right, migrate it.", no_args_is_help=True)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Make it anew also where nothing has changed.")]


@app.command()
def verify(data: DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """Compare the index with the rows, document by document. Exit code 1 if something is wrong."""
    from api.commands.index_verify import run_verify

    if not run_verify(settings_of(data), as_json=as_json):
        raise typer.Exit(1)


@app.command()
def repair(data: DataOption = DEFAULT_DATA, dry_run: DryRunOption = False, as_json: JsonOption = False) -> None:
    """Delete chunks that nobody needs, and parse documents again that lack some. Exit code 1 if something is left."""
    from api.commands.index_repair import run_repair

    if not run_repair(settings_of(data), dry_run=dry_run, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def migrate(data: DataOption = DEFAULT_DATA, dry_run: DryRunOption = False, force: ForceOption = False) -> None:
    """Bring the index into the form that this version writes, while it is used."""
    from api.commands.index_migrate import run_migrate

    run_migrate(settings_of(data), force=force, dry_run=dry_run)
