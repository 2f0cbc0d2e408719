"""What pydantic finds wrong, field by field, in words for callers: nobody has to know how our models are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

_NO_OBJECT = "Input should be a valid dictionary"


@dataclass(frozen=True)
class WrongField:
    """`place` is with dots, and empty where the whole is wrong."""

    place: str
    message: str
    given: Any


def wrong_fields_of(error: ValidationError, under: str = "") -> Iterator[WrongField]:
    path = (under,) if under else ()
    for one in error.errors():
        message = _NO_OBJECT if one["type"] == "model_type" else one["msg"]
        yield WrongField(".".join(map(str, (*path, *one["loc"]))), message, one["input"])
