"""Threads that all begin at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from api.db.database import Rows


def at_once(*acts: Callable[[], object], rows: Rows | None = None) -> None:
    """Run each in a thread of its own, and close that thread's connection to `rows`. What one of them raises is raised
    here, when all have ended."""
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> None:
        start.wait()
        try:
            act()
        finally:
            if rows is not None:
                rows.close_connection()

    with ThreadPoolExecutor(len(acts)) as pool:
        ended = [pool.submit(run, act) for act in acts]
    for one in ended:
        one.result()
