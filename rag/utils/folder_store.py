"""The object store in a folder: `<tenant>/<first two of the hash>/<hash>`, written beside its place and moved there
whole, so that a file is either complete and durable or not there at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

from common.errors import NotFound, StoreFull, StoreUnavailable
from common.turns import stepping_aside
from rag.utils.object_store import StoredFile, Upload

_MARKER = ".pagemill-store"
_FULL = {errno.ENOSPC, errno.EDQUOT}


class FolderStore:
    has_paths = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        # Folders whose own place this process has synced: for a file in one of these, syncing the folder is enough.
        self._durable: set[Path] = set()

    def begin_upload(self) -> Upload:
        return _FolderUpload(self._folder, self._incoming, self._durable)

    def open(self, tenant_id: str, digest: str) -> IO[bytes]:
        path = _place(self._folder, tenant_id, digest)
        try:
            return path.open("rb")
        except FileNotFoundError as exc:
            if not (self._folder / _MARKER).exists():
                # A folder that was never written to, or a disk that is not mounted: no file is known to be missing.
                raise StoreUnavailable(f"the store is not there: {self._folder}") from exc
            raise NotFound("the file is not in the store") from exc
        except OSError as exc:
            raise StoreUnavailable(f"the store can't be read: {exc}") from exc

    @contextmanager
    def local_path(self, tenant_id: str, digest: str) -> Iterator[Path]:
        self.open(tenant_id, digest).close()
        yield _place(self._folder, tenant_id, digest)

    def delete(self, tenant_id: str, digest: str) -> None:
        _place(self._folder, tenant_id, digest).unlink(missing_ok=True)

    def delete_unused(self, tenant_id: str, digest: str, untouched_s: float) -> bool:
        place = _place(self._folder, tenant_id, digest)
        try:
            with _locked(self._folder):
                if time.time() - place.stat().st_mtime < untouched_s:
                    return False
                place.unlink()
        except FileNotFoundError as exc:
            if not self._folder.exists():
                raise StoreUnavailable(f"the store is not there: {self._folder}") from exc
            return False
        except OSError as exc:
            raise StoreUnavailable(f"the store can't be written: {exc.strerror}") from exc
        return True

    def check(self) -> None:
        try:
            upload = self.begin_upload()
            upload.write(b"check")
        except OSError as exc:
            raise StoreUnavailable(f"the store can't be written: {exc}") from exc
        upload.discard()


class _FolderUpload:
    def __init__(self, folder: Path, incoming: Path, durable: set[Path]) -> None:
        self._folder = folder
        self._durable = durable
        self._hash = hashlib.sha256()
        self._size = 0
        self._path = incoming / secrets.token_hex(16)
        try:
            incoming.mkdir(parents=True, exist_ok=True)
            (folder / _MARKER).touch()
            # Unbuffered: pieces come in tens of kilobytes, and a call may bring hundreds of files.
            self._file: IO[bytes] | None = self._path.open("xb", buffering=0)
        except OSError as exc:
            self._file = None
            _refuse(exc)

    def write(self, data: bytes, /) -> int:
        if self._file is None:
            raise StoreUnavailable("this upload has ended")
        try:
            _write_all(self._file, data)
        except OSError as exc:
            self.discard()
            _refuse(exc)
        self._hash.update(data)
        self._size += len(data)
        return len(data)

    def keep(self, tenant_id: str) -> StoredFile:
        if self._file is None:
            raise StoreUnavailable("this upload has ended")
        digest = self._hash.hexdigest()
        place = _place(self._folder, tenant_id, digest)
        try:
            with stepping_aside():
                self._move_to(place)
        except OSError as exc:
            self.discard()
            _refuse(exc)
        self._file.close()
        self._file = None
        return StoredFile(digest, self._size)

    def _move_to(self, place: Path) -> None:
        assert self._file is not None
        os.fsync(self._file.fileno())
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder):
            self._path.replace(place)
            os.utime(place)
        _sync_folders(place.parent, place.parent if place.parent in self._durable else self._folder)
        self._durable.add(place.parent)

    def discard(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        self._path.unlink(missing_ok=True)
        file.close()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One at a time among all processes: a file that is kept again is not deleted in the same moment."""
    fd = os.open(folder / _MARKER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write_all(file: IO[bytes], data: bytes) -> None:
    """A write without a buffer may take less than it was given."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _place(folder: Path, tenant_id: str, digest: str) -> Path:
    return folder / tenant_id / digest[:2] / digest


def _sync_folders(lowest: Path, top: Path) -> None:
    """A rename is durable once the folders that lead to it are, up to the top or to what is known to be."""
    for folder in (lowest, *lowest.parents):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        if folder == top:
            return


def _refuse(exc: OSError) -> NoReturn:
    if exc.errno in _FULL:
        raise StoreFull("the disk is full: the file was not stored") from exc
    raise StoreUnavailable(f"the store can't be written: {exc.strerror}") from exc
