"""Commands that run something: up, server, executor, indexer. Each imports what it runs only when it runs it: every
process of an instance starts through here."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from api.commands.options import DEFAULT_DATA, DataOption, out, require_utf8, settings_of
from common.errors import SettingsError
from common.ids import new_token
from common.logs import set_up_logs
from common.settings import Settings

if TYPE_CHECKING:
    from rag.svr.supervisor import Started


def up(
    data: DataOption = DEFAULT_DATA,
    port: Annotated[int | None, typer.Option(help="Port of the web server; the next free one if it is taken.")] = None,
) -> None:
    """Run everything on this machine until Ctrl-C."""
    from api.instance import require_model, require_writable_rows
    from rag.svr.supervisor import Supervisor

    settings = settings_of(data, _overrides(port))
    require_model(settings)
    _make_folder(settings)
    require_writable_rows(settings)
    set_up_logs(settings.log, "pagemill")
    Supervisor(settings, ["--data", str(settings.data_dir)]).run(partial(_announce, settings))


def server(
    data: DataOption = DEFAULT_DATA,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    fd: Annotated[int | None, typer.Option(hidden=True, help="Listening socket to serve on.")] = None,
) -> None:
    """Run the web server alone."""
    from api.db.database import open_rows
    from api.instance import require_model, require_writable_rows
    from api.server import serve

    settings = settings_of(data, _overrides(port))
    _make_folder(settings)
    require_model(settings)
    require_writable_rows(settings)
    rows = open_rows(settings.database_url)
    rows.check()
    rows.close_connection()
    set_up_logs(settings.log, "server")
    serve(partial(settings_of, data, _overrides(port)), fd)


def reload(data: DataOption = DEFAULT_DATA) -> None:
    """Have the web server of `pagemill up` read its settings anew, without a request being refused or broken."""
    from rag.svr.data_folder import DataFolder

    pid = DataFolder(settings_of(data)).supervisor_pid()
    os.kill(pid, signal.SIGUSR1)
    out.print(f"pagemill up (pid {pid}) was asked to reload its web server; its log says when it has", soft_wrap=True)


def executor(
    data: DataOption = DEFAULT_DATA,
    name: Annotated[str, typer.Option(help="Name in the admin view; by default made of host and process.")] = "",
    boot: Annotated[str, typer.Option(hidden=True, help="Nonce of this start.")] = "",
) -> None:
    """Run one task executor."""
    from api.instance import require_model, require_rows_file, require_writable_rows
    from rag.svr.task_executor import run_executor

    settings = settings_of(data)
    require_rows_file(settings)
    _make_folder(settings)
    require_model(settings)
    require_writable_rows(settings)
    name = require_utf8("the executor's name", name) or f"{socket.gethostname()}-{os.getpid()}"
    set_up_logs(settings.log, f"exec {name.rpartition('-')[2]}")
    run_executor(settings, name, boot or new_token())


def indexer(data: DataOption = DEFAULT_DATA) -> None:
    """Run the indexer of the embedded index; one per machine."""
    from rag.svr.indexer import run_indexer

    settings = settings_of(data)
    if not settings.embeds_index:
        raise SettingsError("index.url names Elasticsearch, which needs no indexer")
    _make_folder(settings)
    set_up_logs(settings.log, "indexer")
    run_indexer(settings)


def _overrides(port: int | None) -> dict[str, object]:
    return {} if port is None else {"server.port": port}


def _make_folder(settings: Settings) -> None:
    """Raises SettingsError where the data folder is needed and can't be used."""
    from rag.svr.data_folder import DataFolder

    elsewhere = (settings.database.url, settings.queue.url, settings.store.url, settings.index.url)
    if not all(elsewhere):
        DataFolder(settings).make()


def _announce(settings: Settings, started: Started) -> None:
    if started.port != started.port_wanted:
        out.print(f"Port {started.port_wanted} is taken; using {started.port}.", style="yellow", soft_wrap=True)
    running = Text.assemble((f"Pagemill is running at {started.address}", "bold"))
    out.print(running.append(f" with {started.executors} executors."), soft_wrap=True)
    if started.new_password:
        first = Text.assemble("  First start. Sign in as ", (started.admin_email, "bold"), ", password ")
        out.print(first.append(started.new_password, "bold"), soft_wrap=True)
    hint = Text.assemble("  A key for REST calls: ", (_create_token_command(settings), "bold"), ".")
    out.print(hint.append("  Ctrl-C stops everything."), soft_wrap=True)


def _create_token_command(settings: Settings) -> str:
    """As it can be typed into another terminal, in the same folder."""
    words = [*_own_command(), "token", "create", "--name", "me"]
    if settings.data_dir != DEFAULT_DATA.resolve():
        words += ["--data", _shortest(settings.data_dir)]
    return shlex.join(words)


def _own_command() -> list[str]:
    if shutil.which("pagemill"):
        return ["pagemill"]
    script = Path(sys.executable).with_name("pagemill")
    return [_shortest(script)] if script.is_file() else [_shortest(Path(sys.executable)), "-m", "api.cli"]


def _shortest(path: Path) -> str:
    return min(str(path), os.path.relpath(path), key=len)
