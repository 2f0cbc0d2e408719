"""The chunk methods: which parts each makes of a group of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag.flow import sections
from rag.flow.chunk import ChunkSettings
from rag.flow.mail import mail_parts
from rag.flow.parts import Part
from rag.flow.qa import pairs_of_rows, pairs_of_text
from rag.flow.rows import html_row_parts, row_parts, tag_parts
from rag.flow.tokens import Scale
from rag.parser.blocks import Block, BlockKind, Picture, Profile, Unit

# These see all of a document at once, so it must not be split into ranges.
WHOLE_DOCUMENT = frozenset(("one",))
# What these pair may stand far apart.
PAIRED = frozenset(("qa", "email"))
# To these a page is a picture of its own, and no text goes on from one to the next.
PAGE_BY_PAGE = frozenset(("presentation", "picture"))
# Rows and pairs are as small as they can be.
CHILDLESS = frozenset(("qa", "table", "tag", "picture"))


def parts_of(
    settings: ChunkSettings, profile: Profile, blocks: Sequence[Block], limit: int, most: int, scale: Scale
) -> Iterable[Part]:
    """`limit` is the chunks' size, `most` what the model takes. A method that is not known is "naive"."""
    match settings.method:
        case "one":
            return [Part(blocks, most, inline=True)]
        case "presentation" if profile.unit in (Unit.PAGE, Unit.SLIDE):
            picture = next((block.picture for block in blocks if block.picture), None)
            return [Part(blocks, most, inline=True, picture=picture)]
        case "picture" if (picture := _only_picture(blocks)) and profile.unit is not Unit.WHOLE:
            # All that stands on the page was read off the picture.
            return [Part(blocks, most, inline=True, picture=picture, kind="image")]
        case "qa":
            return pairs_of_rows(blocks, most) if profile.unit is Unit.ROW else pairs_of_text(blocks, most)
        case "table":
            return row_parts(blocks, most)
        case "tag":
            return tag_parts(blocks, most)
        case "email":
            return mail_parts(blocks)
        case method if method in sections.METHODS and profile.unit is not Unit.ROW:
            return sections.section_parts(method, blocks, limit, most, scale)
    if settings.html_tables and profile.unit is Unit.ROW:
        return html_row_parts(blocks, limit, scale)
    return [Part(blocks)]


def _only_picture(blocks: Sequence[Block]) -> Picture | None:
    figures = [block for block in blocks if block.kind is BlockKind.FIGURE]
    return figures[0].picture if len(figures) == 1 and blocks[0] is figures[0] else None
