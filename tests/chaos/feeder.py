"""A client that keeps an installation busy through the storm, as a careful one would: every request carries an
Idempotency-Key and is sent again until it is answered. Some parses are stopped on the way and started again."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.instance import Instance
from tests.pdfs import write_pages

PAGES = 20
PAGES_A_TASK = 2
_VOLUMES = 8
_AHEAD = 20
_STOPPED = 0.08
_PATIENCE_S = 240.0
# Content of a chunk with its place, by file name.
Chunks = Counter[tuple[str, str]]


class Feeder:
    """Uploads documents while fewer than 20 are open, until told to stop or `most` are in."""

    def __init__(self, instance: Instance, folder: Path, most: int, dice: random.Random) -> None:
        self._instance = instance
        self._folder = folder
        self._most = most
        self._dice = dice
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._failure: BaseException | None = None
        self.dataset_id = new_dataset(instance)
        self.names: dict[str, str] = {}
        self.stopped = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Raises what ended the thread before its time."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def open_documents(self) -> int:
        path = f"/datasets/{self.dataset_id}/documents?run=RUNNING&page_size=1"
        return int(_again(lambda: self._instance.call("GET", path))["data"]["total"])

    def ended(self) -> dict[str, str]:
        """How each document ended, by id; those that have not are missing."""
        found = _documents(self._instance, self.dataset_id)
        return {d["id"]: d["run"] for d in found if d["run"] in ("DONE", "FAIL", "CANCEL")}

    def _feed(self) -> None:
        try:
            while not self._stopping.is_set() and len(self.names) < self._most:
                if self.open_documents() < _AHEAD:
                    self._add_one()
                else:
                    self._stopping.wait(0.3)
        except AssertionError as exc:
            self._failure = exc

    def _add_one(self) -> None:
        number = len(self.names)
        path = document(self._folder, number)
        headers = {"Idempotency-Key": f"upload-{number}"}
        document_id = _again(lambda: self._instance.upload(self.dataset_id, path, headers))
        self.names[document_id] = path.name
        self._parse(document_id, "first")
        if self._dice.random() < _STOPPED:
            self._stopping.wait(self._dice.uniform(0.0, 3.0))
            body = {"document_ids": [document_id]}
            _again(lambda: self._instance.call("DELETE", f"/datasets/{self.dataset_id}/chunks", body))
            self._parse(document_id, "second")
            self.stopped += 1

    def _parse(self, document_id: str, which: str) -> None:
        path, body = f"/datasets/{self.dataset_id}/chunks", {"document_ids": [document_id]}
        headers = {"Idempotency-Key": f"{which}-{document_id}"}
        _again(lambda: self._instance.call("POST", path, body, headers))


def new_dataset(instance: Instance) -> str:
    config = {"task_page_size": PAGES_A_TASK}
    return str(instance.call("POST", "/datasets", {"name": "storm", "parser_config": config})["data"]["id"])


def document(folder: Path, number: int) -> Path:
    """One of a few volumes, made a file of its own by what follows its end, which is not read."""
    volume = number % _VOLUMES
    source = folder / f"volume-{volume}.pdf"
    if not source.exists():
        write_pages(source, PAGES, sentences=24, heading=f"Volume {volume}, sheet")
    path = folder / f"{number:04}.pdf"
    path.write_bytes(source.read_bytes() + f"%{number}\n".encode())
    return path


def chunks_of(instance: Instance, dataset_id: str, names: dict[str, str]) -> Chunks:
    found: Chunks = Counter()
    for document_id, name in names.items():
        path = f"/datasets/{dataset_id}/documents/{document_id}/chunks?page_size=100&page="
        page = 1
        while chunks := instance.call("GET", f"{path}{page}")["data"]["chunks"]:
            found.update((name, c["content"] + str(c["positions"])) for c in chunks)
            page += 1
    return found


def run_calmly(instance: Instance, folder: Path, documents: int) -> Chunks:
    """The same documents with nothing in their way."""
    dataset_id = new_dataset(instance)
    paths = [document(folder, number) for number in range(documents)]
    names = {instance.upload(dataset_id, path): path.name for path in paths}
    ids = list(names)
    for first in range(0, len(ids), 50):
        assert instance.parse(dataset_id, *ids[first : first + 50]) == {"code": 0}
    for document_id in names:
        assert instance.wait_ended(dataset_id, document_id, 600)["run"] == "DONE"
    return chunks_of(instance, dataset_id, names)


def _documents(instance: Instance, dataset_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        path = f"/datasets/{dataset_id}/documents?page_size=100&page={len(found) // 100 + 1}"
        answer = _again(lambda path=path: instance.call("GET", path))  # type: ignore[misc]
        found += answer["data"]["docs"]
        if len(answer["data"]["docs"]) < 100:
            return found


def _again(call: Callable[[], Any]) -> Any:
    """Send until there is an answer that is not "come back later". What the answer says is the caller's business,
    unless it is an error of ours."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            answer = call()
            if not isinstance(answer, dict) or answer["code"] in (0, 102):
                return answer
            refused = str(answer)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            refused = repr(exc)
        assert time.monotonic() < deadline_s, f"no answer in {_PATIENCE_S:.0f} s, the last one was: {refused}"
        time.sleep(0.3)
