"""Pages of lists that refuse what is no page, in a problem that names the parameter."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.apps.problems import FieldError
from api.apps.requests import MAX_NUMBER, Loose, PageSize, params, shown
from api.apps.sizes import max_page_size

_DIGITS = len(str(MAX_NUMBER))


class PageQuery(Loose):
    page: Annotated[int, Field(ge=1, le=MAX_NUMBER)] = 1
    page_size: PageSize = 30


def page_and_size(wrong: list[FieldError]) -> tuple[int, int]:
    """What is wrong with them is added to `wrong`."""
    most = max_page_size()
    return _number(wrong, "page", 1, MAX_NUMBER), _number(wrong, "page_size", min(30, most), most)


def _number(wrong: list[FieldError], name: str, default: int, most: int) -> int:
    given = params().get(name, "")
    if not given:
        return default
    if given.isascii() and given.isdigit() and len(given) <= _DIGITS and 1 <= int(given) <= most:
        return int(given)
    wrong.append(FieldError(name, f"should be a number from 1 to {most}, not {shown(given)}"))
    return default
