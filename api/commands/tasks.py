"""pagemill tasks failed | replay | discard"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from api.commands.options import DEFAULT_DATA, DataOption, JsonOption, print_json, print_table, settings_of
from api.db.services.account_service import AccountService
from api.db.services.control_service import ControlService
from api.db.services.failed_service import FailedFilter, FailedService, FailedTask
from api.db.services.parse_service import Doorbell
from api.instance import open_existing_rows, open_queue, quiet_doorbell
from common.errors import InvalidInput
from common.settings import Settings
from rag.utils.embedders import embedder_name

app = typer.Typer(help="Failed tasks: what became of them, and another chance.", no_args_is_help=True)

TaskOption = Annotated[list[str] | None, typer.Option("--task", help="Id of a task; may be given several times.")]
DocumentOption = Annotated[list[str] | None, typer.Option("--document", help="Id of a document: all its failed tasks.")]
CauseOption = Annotated[str, typer.Option("--cause", help="Error code: all tasks that failed for it.")]
_AT_MOST = 10_000


@app.command()
def failed(
    data: DataOption = DEFAULT_DATA,
    cause: CauseOption = "",
    limit: Annotated[int, typer.Option(min=1, max=_AT_MOST, help="Most tasks to show.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Failed tasks with their cause, newest first."""
    found = _find(settings_of(data), FailedFilter(error_code=cause), limit)
    if as_json:
        print_json([asdict(task) for task in found])
        return
    rows = [(t.id, t.document_name, _pages(t), t.error_code, t.error_message) for t in found]
    print_table("Failed tasks", ("id", "document", "pages", "cause", "message"), rows)


@app.command()
def replay(
    data: DataOption = DEFAULT_DATA,
    task: TaskOption = None,
    document: DocumentOption = None,
    cause: CauseOption = "",
) -> None:
    """Let failed tasks run again, their counters at zero."""
    settings = settings_of(data)
    found = _find(settings, _wanted(task, document, cause), _AT_MOST)
    done = _control(settings).replay([t.id for t in found])
    typer.echo(f"{len(done)} run again, {len(found) - len(done)} refused")
    if len(done) < len(found):
        raise typer.Exit(1)


@app.command()
def discard(
    data: DataOption = DEFAULT_DATA,
    task: TaskOption = None,
    document: DocumentOption = None,
    cause: CauseOption = "",
) -> None:
    """Forget failed tasks; their documents stay failed."""
    settings = settings_of(data)
    found = _find(settings, _wanted(task, document, cause), _AT_MOST)
    typer.echo(f"{_control(settings).discard([t.id for t in found])} discarded")


def _wanted(task: list[str] | None, document: list[str] | None, cause: str) -> FailedFilter:
    wanted = FailedFilter(task or (), document or (), cause)
    if wanted.is_empty:
        raise InvalidInput("name what is meant with --task, --document or --cause")
    return wanted


def _find(settings: Settings, wanted: FailedFilter, limit: int) -> list[FailedTask]:
    rows = open_existing_rows(settings)
    tenant_id = AccountService(rows, embedder_name(settings.embedding)).admin().tenant_id
    return FailedService(rows).find(tenant_id, wanted, limit)


def _control(settings: Settings) -> ControlService:
    bell: Doorbell = quiet_doorbell(open_queue(settings))
    return ControlService(open_existing_rows(settings), settings.tasks, bell)


def _pages(task: FailedTask) -> str:
    return f"{task.from_page + 1}-{task.to_page}" if task.to_page else task.task_type
