"""REST calls as a program makes them that has many: on connections that are kept, one for each of its threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_BOUNDARY = "----pagemill"
_FORM = f"multipart/form-data; boundary={_BOUNDARY}"
_TIMEOUT_S = 120.0


class RestClient:
    def __init__(self, address: str, key: str) -> None:
        self._host = urlsplit(address).netloc
        self._key = key
        self._local = threading.local()

    def begin(self) -> None:
        """Let this thread's next call make a connection: the server closes one that was idle for long."""
        self._local.link = None

    def get(self, path: str) -> Any:
        return self._call("GET", path, b"", "application/json")

    def hand_in(self, dataset_id: str, paths: Sequence[Path]) -> int:
        """Several files in one call, and their parse in a second; how many."""
        parts = [_file_part(path) for path in paths]
        found = self._call("POST", f"/datasets/{dataset_id}/documents", _body(parts), _FORM)["data"]
        self.parse(dataset_id, [each["id"] for each in found])
        return len(found)

    def parse(self, dataset_id: str, documents: Sequence[str]) -> None:
        ids = json.dumps({"document_ids": documents}).encode()
        answer = self._call("POST", f"/datasets/{dataset_id}/chunks", ids, "application/json")
        assert answer["code"] == 0, answer

    def _call(self, method: str, path: str, body: bytes, content_type: str) -> Any:
        link = getattr(self._local, "link", None)
        if link is None:
            link = self._local.link = HTTPConnection(self._host, timeout=_TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": content_type}
        link.request(method, f"/api/v1{path}", body, headers)
        with link.getresponse() as answer:
            said = answer.read()
        assert answer.status < 300, said
        return json.loads(said)


def _file_part(path: Path) -> bytes:
    head = f'Content-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
    return head.encode() + path.read_bytes()


def _body(parts: Sequence[bytes]) -> bytes:
    edge = f"--{_BOUNDARY}\r\n".encode()
    return b"".join(edge + part + b"\r\n" for part in parts) + f"--{_BOUNDARY}--\r\n".encode()
