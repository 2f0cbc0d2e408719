"""Ids: public ones are UUID1 hex as RAGFlow's clients expect; task ids sort by their time of birth."""

from __future__ import annotations

import os
import re
import time
import uuid
from hashlib import blake2b

_HEX32 = re.compile(r"[0-9a-f]{32}")


def new_id() -> str:
    """A public id: 32 lower hex digits of a UUID1."""
    return uuid.uuid1().hex


def new_task_ids(count: int) -> list[str]:
    """Each 32 hex digits that sort by creation time, so that new rows land at the end of the table's index. Chance is
    asked for once: that costs more than all the rest."""
    ms, chance = time.time_ns() // 1_000_000, os.urandom(10 * count).hex()
    return [f"{ms:012x}{chance[start : start + 20]}" for start in range(0, 20 * count, 20)]


def new_token() -> str:
    """A claim token or a boot nonce: unguessable, never reused."""
    return os.urandom(16).hex()


def is_id(value: str) -> bool:
    return _HEX32.fullmatch(value) is not None


def chunk_id(document_id: str, generation: int, task_no: int, claim_no: int, ordinal: int) -> str:
    """Made of the claim that wrote it: the same work by another claim has other ids."""
    name = f"{document_id}/{generation}/{task_no}/{claim_no}/{ordinal}"
    return blake2b(name.encode(), digest_size=16).hexdigest()
