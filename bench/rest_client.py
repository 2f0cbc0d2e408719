"""REST calls as a program makes them that has many: on connections that are kept, one for each of its threads."""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_BOUNDARY = "----pagemill"
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

    def submit(self, dataset_id: str, path: Path) -> str:
        """A file as a job, whose parse begins at once; its id."""
        fields = f'name="dataset_id"\r\n\r\n{dataset_id}', f'name="file"; filename="{path.name}"\r\n\r\n'
        head = "\r\n".join(f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {field}" for field in fields)
        body = head.encode() + path.read_bytes() + f"\r\n--{_BOUNDARY}--\r\n".encode()
        return str(self._call("POST", "/jobs", body, f"multipart/form-data; boundary={_BOUNDARY}")["job_id"])

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
