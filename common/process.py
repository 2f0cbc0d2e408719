"""What a process asks of the kernel about its own life."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_AUTOGROUP = Path("/proc/self/autogroup")
_LOAD = Path("/proc/loadavg")


def die_with_parent(signum: signal.Signals, parent_pid: int) -> None:
    """Have the kernel send `signum` to this process when its parent dies, by whatever cause.

    The kernel watches the parent's *thread* that started this process: start it from a thread that stays,
    never from a pool's. Raises ProcessLookupError if the parent is gone already. Where there is no such call
    (it is Linux's own) only that check is made."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"prctl: {os.strerror(error)}")
    if os.getppid() != parent_pid:
        raise ProcessLookupError(f"the parent process {parent_pid} is gone")


def leave_network() -> bool:
    """Have this process, and all that it starts, reach no other: not even by this machine's own addresses.

    False where the kernel does not let it: it is Linux's own, and may be kept from who is not root."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return any(libc.unshare(flags) == 0 for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET))


def stand_back(nice: int) -> None:
    """Let every other process have the processor first. To be called by the leader of a session.

    Where Linux shares the processor between sessions, `nice` counts only within one: there the session as a whole is
    made to stand back. Where it does not, or may not be told, there is no such file, or it can't be written."""
    os.nice(nice)
    with suppress(OSError):
        _AUTOGROUP.write_text(str(nice), encoding="ascii")


def has_free_core() -> bool:
    """Whether fewer threads want to run just now, besides the one that asks, than there are cores. False where the
    kernel does not tell."""
    try:
        running = int(_LOAD.read_text(encoding="ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return False
    return running - 1 < len(os.sched_getaffinity(0))
