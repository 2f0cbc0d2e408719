"""A listening socket on an address, or a clear error."""

from __future__ import annotations

import socket

from common.errors import SettingsError

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Raises SettingsError where nobody can listen there, such as on a port that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as exc:
        listener.close()
        raise SettingsError(f"can't listen on {host}:{port}: {exc.strerror or exc}") from exc
    listener.set_inheritable(True)
    return listener
