"""The object store in a folder: whole files or none, and clear errors when the disk refuses."""

from __future__ import annotations

import errno
import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from common.errors import NotFound, StoreFull, StoreUnavailable
from rag.utils import folder_store
from rag.utils.folder_store import FolderStore


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != ".pagemill-store")


def test_a_kept_file_is_found_by_its_hash(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    upload = store.begin_upload()
    upload.write(b"hello ")
    upload.write(b"world")
    stored = upload.keep("t1")
    assert stored.digest == hashlib.sha256(b"hello world").hexdigest()
    assert stored.size_bytes == 11
    with store.open("t1", stored.digest) as file:
        assert file.read() == b"hello world"
    with store.local_path("t1", stored.digest) as path:
        assert path.read_bytes() == b"hello world"
    assert files_in(tmp_path) == [f"t1/{stored.digest[:2]}/{stored.digest}"]
    upload.discard()  # does nothing after keep
    assert len(files_in(tmp_path)) == 1


def test_the_same_bytes_are_stored_once_per_tenant(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for tenant in ("a", "a", "b"):
        upload = store.begin_upload()
        upload.write(b"same")
        upload.keep(tenant)
    assert len(files_in(tmp_path)) == 2


def test_a_discarded_upload_leaves_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    upload = store.begin_upload()
    upload.write(b"x" * 5_000_000)
    upload.discard()
    assert files_in(tmp_path) == []
    with pytest.raises(StoreUnavailable):
        upload.write(b"more")


def test_another_tenants_file_is_not_found(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    upload = store.begin_upload()
    stored = upload.keep("t1")
    with pytest.raises(NotFound):
        store.open("t2", stored.digest)
    with pytest.raises(NotFound), store.local_path("t2", stored.digest):
        pass
    store.delete("t1", stored.digest)
    store.delete("t1", stored.digest)
    with pytest.raises(NotFound):
        store.open("t1", stored.digest)


@pytest.mark.parametrize("when", ["writing", "syncing"])
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = FolderStore(tmp_path)
    upload = store.begin_upload()
    if when == "writing":
        real = upload._file  # type: ignore[attr-defined]
        with pytest.raises(StoreFull, match="disk is full"):
            upload._file = _FullFile(real)  # type: ignore[attr-defined]
            upload.write(b"x")
    else:
        upload.write(b"x")
        monkeypatch.setattr(folder_store.os, "fsync", full)
        with pytest.raises(StoreFull, match="disk is full"):
            upload.keep("t1")
    assert files_in(tmp_path) == []


class _FullFile:
    """A file on a disk without room: every write fails, closing works."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def write(self, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_a_store_that_is_not_there_is_an_outage(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    store = FolderStore(blocked / "store")
    with pytest.raises(StoreUnavailable):
        store.check()
    with pytest.raises(StoreUnavailable), store.local_path("t", "0" * 64):
        pass
    FolderStore(tmp_path / "fine").check()
    assert files_in(tmp_path / "fine") == []


def test_a_store_that_is_not_there_is_an_outage_and_no_missing_file(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "files")
    store.begin_upload().discard()
    assert store.delete_unused("tenant", "0" * 64, 0.0) is False
    shutil.rmtree(tmp_path / "files")
    with pytest.raises(StoreUnavailable, match="the store is not there"):
        store.delete_unused("tenant", "0" * 64, 0.0)
