"""Commands that run something: up, server, executor, indexer. Each imports what it runs only when it runs it: every
process of an instance starts through here."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.options import DEFAULT_DATA, DataOption, out, settings_of
from common.ids import new_token
from common.logs import set_up_logs
from common.settings import load

if TYPE_CHECKING:
    from rag.svr.supervisor import Started


def up(
    data: DataOption = DEFAULT_DATA,
    port: Annotated[int | None, typer.Option(help="Port of the web server; the next free one if it is taken.")] = None,
) -> None:
    """Run everything on this machine until Ctrl-C."""
    from rag.svr.supervisor import Supervisor

    overrides = {} if port is None else {"server.port": port}
    settings = load(data, overrides=overrides).settings
    set_up_logs(settings.log, "pagemill")
    Supervisor(settings, ["--data", str(settings.data_dir)]).run(_announce)


def server(
    data: DataOption = DEFAULT_DATA,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    fd: Annotated[int | None, typer.Option(hidden=True, help="Listening socket to serve on.")] = None,
) -> None:
    """Run the web server alone."""
    from api.server import serve

    overrides = {} if port is None else {"server.port": port}
    settings = load(data, overrides=overrides).settings
    set_up_logs(settings.log, "server")
    serve(settings, fd)


def executor(
    data: DataOption = DEFAULT_DATA,
    name: Annotated[str, typer.Option(help="Name in the admin view; by default made of host and process.")] = "",
    boot: Annotated[str, typer.Option(hidden=True, help="Nonce of this start.")] = "",
) -> None:
    """Run one task executor."""
    from rag.svr.task_executor import run_executor

    settings = settings_of(data)
    name = name or f"{socket.gethostname()}-{os.getpid()}"
    set_up_logs(settings.log, f"exec {name.rpartition('-')[2]}")
    run_executor(settings, name, boot or new_token())


def indexer(data: DataOption = DEFAULT_DATA) -> None:
    """Run the indexer of the embedded index; one per machine."""
    from rag.svr.indexer import run_indexer

    settings = settings_of(data)
    set_up_logs(settings.log, "indexer")
    run_indexer(settings)


def _announce(started: Started) -> None:
    if started.port != started.port_wanted:
        out.print(f"[yellow]Port {started.port_wanted} is taken; using {started.port}.[/yellow]")
    out.print(f"[bold]Pagemill is running at {started.address}[/bold] with {started.executors} executors.")
    if started.new_password:
        out.print(f"  First start. Sign in as [bold]{started.admin_email}[/bold], password", end=" ")
        out.print(started.new_password, style="bold", markup=False, highlight=False)
    out.print("  A key for REST calls: [bold]pagemill token create --name me[/bold].  Ctrl-C stops everything.")
