"""A real Valkey of a test's or a bench's own, which may be killed and started again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from common.errors import QueueUnavailable
from rag.utils.redis_conn import Queue
from rag.utils.valkey import valkey_argv
from tests.waiting import wait_until


class ValkeyServer:
    """Append-only, synced every second, on a unix socket: as `pagemill up` starts it. The folder's path is short."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "v.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(valkey_argv(self.folder, self.socket))
        queue = Queue(self.url)
        wait_until(lambda: _answers(queue), what="Valkey")
        queue.close()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def forget_all(self) -> None:
        """Remove what it had written, while it does not run: it starts empty."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()


def _answers(queue: Queue) -> bool:
    try:
        queue.check()
    except QueueUnavailable:
        return False
    return True
