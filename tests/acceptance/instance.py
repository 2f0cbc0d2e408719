"""A running Pagemill for acceptance tests: the product as users start it, in a folder and on a port of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from common.settings import ROOT
from tests import processes
from tests.waiting import PATIENCE_S, free_port, wait_until

PAGEMILL = [sys.executable, "-m", "api.cli"]
EXECUTOR = "api.cli executor"
PARSER = "rag.svr.parser_child"
# How long each of these may take on a machine that is slow and busy.
_START_S = 120.0
_STOP_S = 90.0
_END_S = 150.0


class Instance:
    def __init__(self, data: Path, *, port: int | None = None, **environ: str) -> None:
        self.data = data
        self.port = port or free_port()
        self.log = data.parent / f"{data.name}.log"
        self.environ = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **environ}
        self._process: subprocess.Popen[bytes] | None = None
        self._key = ""

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*PAGEMILL, "up", "--data", str(self.data), "--port", str(self.port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environ,
                cwd=ROOT,
            )
        wait_until(lambda: self._is_ready() or not self.is_alive, _START_S, "Pagemill to be ready")
        assert self.is_alive, self.output()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def address(self) -> str:
        note = json.loads((self.data / "run" / "up.json").read_text())
        return str(note["address"])

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def password(self) -> str | None:
        found = re.search(r"password\s+(\S+)", self.output())
        return found.group(1) if found else None

    def children(self, name: str = "") -> list[psutil.Process]:
        """What the supervisor itself has started; with a name, those whose command line has it. A process that one of
        these has just forked is not among them, though it has its parent's command line for a moment."""
        return processes.children(self.pid, name)

    def descendants(self, name: str = "") -> list[psutil.Process]:
        """All processes below this instance."""
        return processes.descendants(self.pid, name)

    def stop(self, signum: int = signal.SIGTERM, timeout_s: float = _STOP_S) -> int:
        assert self._process is not None
        if self.is_alive:
            self._process.send_signal(signum)
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """With everything below it, and with what a supervisor that is gone has left: a suspended process stays."""
        left = self.descendants() if self.is_alive else []
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        left += processes.at_work_in(self.data)
        processes.kill_all(left)
        wait_until(lambda: not processes.alive(left), what=f"the end of all processes of {self.data}")

    def query(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        """Straight from its own database."""
        with closing(sqlite3.connect(self.data / "pagemill.db", timeout=PATIENCE_S)) as db:
            return db.execute(sql, params).fetchall()

    def run(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A `pagemill` command on this instance's data folder."""
        done = subprocess.run(
            [*PAGEMILL, *args, "--data", str(self.data)],
            capture_output=True,
            text=True,
            env=self.environ,
            cwd=ROOT,
            timeout=120,
        )
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done

    def key(self) -> str:
        if not self._key:
            self._key = self.run("token", "create", "--name", "tests").stdout.strip()
        return self._key

    def use_key(self, key: str) -> None:
        """Speak for another tenant."""
        self._key = key

    def call(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        """A REST call under /api/v1 with a key; the parsed answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/api/v1{path}", data, method=method)
        request.add_header("Authorization", f"Bearer {self.key()}")
        request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as exc:
            return json.loads(exc.read())

    def dataset(self, name: str = "tests") -> str:
        return str(self.call("POST", "/datasets", {"name": name})["data"]["id"])

    def upload(self, dataset_id: str, path: Path, headers: dict[str, str] | None = None) -> str:
        boundary = "----pagemill"
        head = (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n').encode()
        body = head + path.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        request = urllib.request.Request(f"{self.address}/api/v1/datasets/{dataset_id}/documents", body)
        request.add_header("Authorization", f"Bearer {self.key()}")
        request.add_header("Content-Type", f"multipart/form-data; boundary={boundary}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            found = json.loads(answer.read())
        assert found["code"] == 0, found
        return str(found["data"][0]["id"])

    def parse(self, dataset_id: str, *document_ids: str) -> Any:
        return self.call("POST", f"/datasets/{dataset_id}/chunks", {"document_ids": list(document_ids)})

    def document(self, dataset_id: str, document_id: str) -> dict[str, Any]:
        found = self.call("GET", f"/datasets/{dataset_id}/documents?id={document_id}")
        assert found["code"] == 0, found
        document: dict[str, Any] = found["data"]["docs"][0]
        return document

    def wait_ended(self, dataset_id: str, document_id: str, timeout_s: float = _END_S) -> dict[str, Any]:
        deadline_s = time.monotonic() + timeout_s
        while True:
            document = self.document(dataset_id, document_id)
            if document["run"] in ("DONE", "FAIL", "CANCEL"):
                return document
            assert time.monotonic() < deadline_s, (document["run"], document["progress_msg"], self.output())
            time.sleep(0.05)

    def search(self, dataset_id: str, question: str) -> list[dict[str, Any]]:
        found = self.call("POST", "/retrieval", {"dataset_ids": [dataset_id], "question": question})
        assert found["code"] == 0, found
        chunks: list[dict[str, Any]] = found["data"]["chunks"]
        return chunks

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=20) as answer:
                return bool(answer.status == 200)
        except (OSError, ValueError):
            return False


@contextmanager
def made_instance(data: Path, *, port: int | None = None, **environ: str) -> Iterator[Instance]:
    """One that is still to be started. Whatever is left of it at the end is killed."""
    instance = Instance(data, port=port, **environ)
    try:
        yield instance
    finally:
        instance.kill()


@contextmanager
def running_instance(data: Path, **environ: str) -> Iterator[Instance]:
    with made_instance(data, port=None, **environ) as instance:
        instance.start()
        yield instance
