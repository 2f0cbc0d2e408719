"""Pictures that were drawn once, in a folder: `<file digest>/<name>.png`, put there whole by a rename.

Bounded: the pictures that nobody asked for longest go first. May be deleted at any time; nothing is lost but work."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from common.errors import StoreUnavailable

MOST_BYTES = 256 << 20
_PARTIAL = ".partial"
_PARTIAL_KEPT_S = 600.0
_TRIMMING = threading.Lock()


class PictureCache:
    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def get(self, digest: str, name: str, make: Callable[[Path], object]) -> bytes:
        """The picture, which `make` writes to the path that it is given where it is not there yet.

        Raises what `make` raises, and StoreUnavailable where the folder can't be used."""
        place = self._folder / digest / f"{name}.png"
        try:
            with suppress(FileNotFoundError):
                data = place.read_bytes()
                os.utime(place)  # asked for just now: not the first to go
                return data
            partial = place.with_name(f"{secrets.token_hex(8)}{_PARTIAL}")
            partial.parent.mkdir(parents=True, exist_ok=True)
            partial.touch()  # a folder with something in it is not cleared away while the picture is drawn
        except OSError as exc:
            raise _unusable(exc) from exc
        try:
            make(partial)
            data = partial.read_bytes()
            partial.replace(place)
        except OSError as exc:
            raise _unusable(exc) from exc
        finally:
            partial.unlink(missing_ok=True)
        self.trim()
        return data

    def forget(self, digest: str) -> None:
        """Every picture of a file that is gone. Without error where there is none."""
        shutil.rmtree(self._folder / digest, ignore_errors=True)

    def trim(self) -> None:
        """Delete the oldest beyond the bound. One thread does it; the others need not wait."""
        if not _TRIMMING.acquire(blocking=False):
            return
        try:
            files = sorted(self._files())
            size = sum(size for _, size, _ in files)
            for _, bytes_, path in files:
                if size <= self._most_bytes:
                    break
                path.unlink(missing_ok=True)
                size -= bytes_
                with suppress(OSError):  # others are in it
                    path.parent.rmdir()
        finally:
            _TRIMMING.release()

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each picture was last asked for, its size and its place. What a killed process left goes at once."""
        stale_s = time.time() - _PARTIAL_KEPT_S
        for path in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):
                stat = path.stat()
                if path.suffix != _PARTIAL:
                    yield stat.st_mtime, stat.st_size, path
                elif stat.st_mtime < stale_s:
                    path.unlink(missing_ok=True)


def _unusable(exc: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"the folder of pictures can't be used: {exc.strerror}")
