"""A connection taken from the web server, which has read the request and would now write the answer."""

from __future__ import annotations

import os
import socket

# A peer that acknowledges nothing for so long is gone.
_SILENT_PEER_MS = 60_000
# What waits in the kernel is not seen as slowness: so it is not much.
_KERNEL_BYTES = 64 * 1024


def take_over(held: socket.socket) -> socket.socket:
    """The connection under `held`, as a socket of one's own that does not block.

    Under `held` there is an unconnected socket from now on: the server that still has it shuts it down, reads it to its
    end and closes it as it likes. A mere copy would be shut down with it."""
    taken = held.dup()
    with socket.socket() as unconnected:
        os.dup2(unconnected.fileno(), held.fileno(), inheritable=False)
    taken.setblocking(False)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if taken.family in (socket.AF_INET, socket.AF_INET6):
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_PEER_MS)
    return taken
