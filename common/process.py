"""What a process asks of the kernel about its own life."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


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
