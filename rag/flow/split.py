"""How a document is cut into ranges, one task each. Pure: the profile, two sizes and the pages asked for in,
ranges out."""

from __future__ import annotations

from collections.abc import Sequence

from common.errors import InvalidInput, PagesOutside
from rag.parser.blocks import Profile, Unit

# Rows of a sheet that are packed into chunks together. Ranges end at its multiples, so that the chunks of a
# sheet do not depend on where its ranges end.
ROW_GROUP = 100

Range = tuple[int, int]


def split(
    profile: Profile,
    page_size: int,
    row_size: int,
    pages: Sequence[Sequence[int]] | None = None,
    *,
    whole: bool = False,
) -> tuple[Range, ...]:
    """Half-open ranges of units, counted from 0, in order. `whole`: as few as can be, for chunks that need it all.

    `pages` are first and last pages, counted from 1, both included; they apply to documents that have pages.
    Raises InvalidInput for a malformed one, PagesOutside for one that starts beyond the last page."""
    if page_size < 1 or row_size < 1:
        raise InvalidInput(f"the size of a range must be at least 1, not {min(page_size, row_size)}")
    match profile.unit:
        case Unit.WHOLE:
            return ((0, profile.units),)
        case Unit.ROW:
            return _cut(0, profile.units, profile.units if whole else -(-row_size // ROW_GROUP) * ROW_GROUP)
        case Unit.PAGE | Unit.SLIDE:
            wanted = merge([_page_range(asked, profile.units) for asked in pages or ((1, profile.units),)])
            return tuple(
                part for first, end in wanted for part in _cut(first, end, end - first if whole else page_size)
            )


def asked_units(unit: Unit, units: int, pages: Sequence[Sequence[int]] | None) -> int:
    """How many units of a document of so many are read, where only these pages are asked for."""
    if unit not in (Unit.PAGE, Unit.SLIDE) or not pages:
        return units
    return sum(end - first for first, end in merge([_page_range(asked, units) for asked in pages]))


def range_text(unit: Unit, from_unit: int, to_unit: int) -> str:
    """The range as people count: "page 3", "pages 13-24", "rows 1-5000", or "the file"."""
    if unit is Unit.WHOLE:
        return "the file"
    if to_unit - from_unit == 1:
        return f"{unit.value} {to_unit}"
    return f"{unit.value}s {from_unit + 1}-{to_unit}"


def merge(ranges: Sequence[Range]) -> list[Range]:
    """In order, and as one where they overlap."""
    merged: list[Range] = []
    for first, end in sorted(ranges):
        if merged and first < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return merged


def _cut(first: int, end: int, size: int) -> tuple[Range, ...]:
    return tuple((start, min(start + size, end)) for start in range(first, end, size))


def _page_range(asked: Sequence[int], pages: int) -> Range:
    match asked:
        case [int(first), int(last)] if not isinstance(first, bool) and not isinstance(last, bool):
            pass
        case _:
            raise InvalidInput(f"pages must be given as [first, last], not {asked!r}")
    if first < 1 or last < first:
        raise InvalidInput(f"pages {first}-{last} are no range: the first page is 1, and the last is not before it")
    if first > pages:
        count = "1 page" if pages == 1 else f"{pages} pages"
        raise PagesOutside(f"pages {first}-{last} are outside this document, which has {count}")
    return first - 1, min(last, pages)
