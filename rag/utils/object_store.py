"""The object store: the contract. Files are kept by tenant and content hash, so a file that is uploaded twice
is stored once. Implementations stand beside this file (folder_store.py)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol


@dataclass(frozen=True)
class StoredFile:
    """`digest` is the SHA-256 of the bytes, in hex."""

    digest: str
    size_bytes: int


class Upload(Protocol):
    """A file on its way in: written piece by piece, then kept or thrown away. Nothing is seen before `keep`."""

    def write(self, data: bytes, /) -> int: ...

    def keep(self, tenant_id: str) -> StoredFile:
        """Make the bytes durable under their hash. Raises StoreFull or StoreUnavailable; nothing is left then."""

    def discard(self) -> None:
        """Forget the bytes. Does nothing after `keep`."""


class ObjectStore(Protocol):
    """`has_paths` tells that files have local paths of their own: leaving the context of one costs nothing."""

    has_paths: bool

    def begin_upload(self) -> Upload: ...

    def open(self, tenant_id: str, digest: str) -> IO[bytes]:
        """Raises NotFound, StoreUnavailable."""

    def local_path(self, tenant_id: str, digest: str) -> AbstractContextManager[Path]:
        """A path that a parser process can open while the context lasts."""

    def delete(self, tenant_id: str, digest: str) -> None:
        """Without error where there is none."""

    def delete_unused(self, tenant_id: str, digest: str, untouched_s: float) -> bool:
        """Delete the file if nobody kept it again lately; looked at under the store's lock, which `keep` takes too."""

    def check(self) -> None:
        """Raise StoreUnavailable unless a file can be written now."""
