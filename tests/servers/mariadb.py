"""A real MariaDB of a test's or a bench's own, which may be killed and started again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.waiting import free_port, wait_until

_STOP_S = 30


class MariaServer:
    """InnoDB with its log synced every second, no binary log. `url` has no database name yet."""

    def __init__(self, folder: Path) -> None:
        """Makes an empty server in `folder`, which must not exist yet."""
        folder.mkdir(mode=0o755)
        self._folder = folder
        self._who = []
        if os.getuid() == 0:
            shutil.chown(folder, "mysql", "mysql")
            self._who = ["--user=mysql"]
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"mysql://root@127.0.0.1:{self._port}"
        subprocess.run(
            [
                "mariadb-install-db",
                *self._who,
                f"--datadir={folder}/data",
                "--auth-root-authentication-method=normal",
            ],
            check=True,
            capture_output=True,
        )

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                "mariadbd", "--no-defaults", *self._who, f"--datadir={self._folder}/data",
                f"--socket={self._folder}/s.sock", f"--port={self._port}", "--bind-address=127.0.0.1",
                f"--pid-file={self._folder}/pid", "--innodb-flush-log-at-trx-commit=2", "--skip-log-bin",
            ],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(lambda: self._sql("SELECT 1").returncode == 0, 60, "MariaDB", look_s=0.1)

    def create_database(self, name: str) -> str:
        """The address of a new, empty database."""
        done = self._sql(f"CREATE DATABASE {name}")
        assert done.returncode == 0, done.stderr
        return f"{self.url}/{name}"

    def stop(self) -> None:
        """In order, as an operator restarts it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_STOP_S)
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            self._process = None

    def _sql(self, statement: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(self._port), "-u", "root", "-e", statement],
            capture_output=True,
        )
