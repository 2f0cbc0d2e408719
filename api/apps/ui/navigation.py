"""The sections that the head of every page leads to. A page's module names its own as SECTION, with a number
for its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import cast

from flask import Flask, current_app

_KEY = "pagemill.sections"


@dataclass(frozen=True)
class Section:
    """`endpoint` is its first page, `icon` a symbol of static/icons.svg. `key` is what its pages name it by."""

    order: int
    key: str
    label: str
    endpoint: str
    icon: str
    for_admins: bool = False


def register(app: Flask, pages: Iterable[ModuleType]) -> None:
    found: list[Section] = [page.SECTION for page in pages if hasattr(page, "SECTION")]
    app.extensions[_KEY] = tuple(sorted(found, key=lambda section: section.order))


def sections(*, is_admin: bool) -> list[Section]:
    found = cast("tuple[Section, ...]", current_app.extensions[_KEY])
    return [section for section in found if is_admin or not section.for_admins]
