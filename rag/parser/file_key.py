"""Whether a file is still the one that was read last: for readers that keep it open between ranges."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class FileKey(NamedTuple):
    path: Path
    changed_ns: int
    size: int


def file_key(path: Path) -> FileKey:
    stat = path.stat()
    return FileKey(path, stat.st_mtime_ns, stat.st_size)
