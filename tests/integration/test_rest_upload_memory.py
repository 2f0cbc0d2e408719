"""A large upload costs no memory: measured as the peak of a process that does nothing else."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.rest_world import rest_world

SIZE = 200 * 1024 * 1024
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="big.txt"\r\n\r\n'
TAIL = b"\r\n--b--\r\n"


class Body(io.RawIOBase):
    """A multipart body with one file of `size` bytes, made as it is read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.length = len(HEAD) + size + len(TAIL)
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), 64 * 1024, self.length - self._at)
        piece = self._piece(wanted)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _piece(self, wanted: int) -> bytes:
        if self._at < len(HEAD):
            return HEAD[self._at : self._at + wanted]
        left = len(HEAD) + self._size - self._at
        if left > 0:
            return b"0123456789abcdef" * (min(wanted, left) // 16) or b"x" * min(wanted, left)
        return TAIL[-left : wanted - left]


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(folder: str) -> None:
    with rest_world(Path(folder)) as world:
        dataset_id = world.dataset()

        def upload(size: int) -> Any:
            body = Body(size)
            return world.call(
                "POST",
                f"/datasets/{dataset_id}/documents",
                environ_overrides={
                    "wsgi.input": body,
                    "CONTENT_LENGTH": str(body.length),
                    "CONTENT_TYPE": "multipart/form-data; boundary=b",
                },
            ).get_json()

        upload(1_000_000)
        before = peak_bytes()
        answer = upload(SIZE)
        grown = peak_bytes() - before
        print(json.dumps({"code": answer["code"], "size": answer["data"][0]["size"], "grown": grown}))


def test_a_200_mb_upload_does_not_raise_the_peak(tmp_path: Path) -> None:
    script = f"from {__name__} import main; main({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["code"], answer["size"]) == (0, SIZE)
    assert answer["grown"] < 40 * 1024 * 1024, answer
    assert not list((tmp_path / "files" / "incoming").iterdir())
