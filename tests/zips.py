"""ZIP archives for tests, with whatever in them: most of the documents that offices write are ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path


def zip_of(parts: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def write_zip(path: Path, parts: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path.write_bytes(zip_of(parts, method))
    return path


def parts_of(content: bytes) -> dict[str, bytes]:
    """The members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
