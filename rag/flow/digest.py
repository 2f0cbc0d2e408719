"""The digest of a task: equal digests give equal chunks and vectors, so one's result serves the other."""

from __future__ import annotations

import hashlib

import msgspec

from rag.flow.chunk import ChunkSettings
from rag.parser.blocks import PARSER_VERSION, PLAIN, Profile, ReadOptions


def task_digest(
    *,
    file_digest: str,
    first: int,
    last: int,
    profile: Profile,
    chunking: ChunkSettings,
    options: ReadOptions = PLAIN,
    embedding_model: str,
    embedding_dimension: int,
    embedding_url: str = "",
    file_name: str | None = None,
    filename_embd_weight: float = 0.0,
    parser_version: int = PARSER_VERSION,
) -> str:
    """SHA-256, in hex, of everything that decides what a task for the units `first` up to `last` makes.

    The file's name counts only where it is weighted into the vectors."""
    parts = {
        "file": file_digest,
        "range": (first, last),
        "profile": profile,
        "parser_version": parser_version,
        "chunks": chunking,
        "options": msgspec.structs.replace(options, password=password_mark(options.password, file_digest)),
        "embedding": (embedding_url, embedding_model, embedding_dimension),
        "file_name": (file_name, filename_embd_weight) if filename_embd_weight else None,
    }
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def password_mark(password: str, file_digest: str) -> str:
    """What stands for a password where it counts: another one for each file, so that it can't be told from another
    file with the same one. Empty where there is none."""
    if not password:
        return ""
    return hashlib.blake2b(password.encode("utf-8", "surrogatepass"), key=file_digest.encode()[:64]).hexdigest()
