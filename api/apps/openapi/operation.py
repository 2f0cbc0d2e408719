"""What a route declares about itself, beside its handler: what it takes and what it answers.

The same declaration decides at run time which parameters and fields the handler gets to see (requests.py), so nothing
that is not described can have an effect. The document made of it is document.py's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from flask import current_app, request
from pydantic import BaseModel

_ATTRIBUTE = "pagemill_operation"
_REASON = "pagemill_undescribed"
View = TypeVar("View", bound=Callable[..., Any])


class Surface(Enum):
    """The shape of answers and errors. PLAIN and FULL are RAGFlow's envelopes, with HTTP 200 for business errors;
    PROBLEM has ordinary statuses; BARE answers without an envelope, and fails in RAGFlow's."""

    PLAIN = "plain"
    FULL = "full"
    PROBLEM = "problem"
    BARE = "bare"


@dataclass(frozen=True)
class Operation:
    """`answer` is what `data` holds, or the whole body where there is no envelope; None where there is nothing,
    `X | None` where `data` is left out at times. `beside` names what stands next to `data`. `media` are the content
    types of bytes in place of JSON."""

    tag: str
    summary: str
    note: str = ""
    surface: Surface = Surface.PLAIN
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    form: type[BaseModel] | None = None
    needs_body: bool = True
    answer: Any = None
    beside: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    media: Sequence[str] = ()
    statuses: Sequence[int] = ()
    is_once: bool = False
    example: Any = None
    is_deprecated: bool = False

    def takes(self, name: str) -> bool:
        """Whether the query may have a parameter of this name."""
        return self.query is not None and name in self.query.model_fields


def describe(tag: str, summary: str, **fields: Any) -> Callable[[View], View]:
    """The view's operation: stands right above its handler, below the addresses."""
    operation = Operation(tag, summary, **fields)

    def mark(view: View) -> View:
        setattr(view, _ATTRIBUTE, operation)
        return view

    return mark


def undescribed(reason: str) -> Callable[[View], View]:
    """For addresses that only refuse, in the shape of their neighbours."""

    def mark(view: View) -> View:
        setattr(view, _REASON, reason)
        return view

    return mark


def operation_of(view: Callable[..., Any]) -> Operation | None:
    found = getattr(view, _ATTRIBUTE, None)
    return found if isinstance(found, Operation) else None


def why_undescribed(view: Callable[..., Any]) -> str:
    return str(getattr(view, _REASON, ""))


def current_operation() -> Operation:
    """Of the route that answers the current request."""
    found = operation_of(current_app.view_functions[request.endpoint or ""])
    if found is None:
        raise LookupError(f"{request.endpoint} is not described, and so takes nothing")
    return found
