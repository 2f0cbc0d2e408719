"""Pages that lie on their side or their head: they are read upright, and their blocks stand where they are shown."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from rag.parser.blocks import Block, Box, PlacedLine
from rag.parser.layout import Line


class Upright(NamedTuple):
    """The size of a page that was turned to the left by so many quarters of a circle until its text stood upright."""

    width: float
    height: float
    turns: int

    def as_shown(self, block: Block) -> Block:
        """The block of the upright page, in its place on the page as it lies."""
        if not self.turns:
            return block
        lines = tuple(PlacedLine(line.start, self._box(line.box)) for line in block.lines)
        table, picture = block.table, block.picture
        if table is not None:
            table = replace(table, places=tuple(self._box(place) for place in table.places))
        if picture is not None and picture.box is not None:
            picture = replace(picture, box=self._box(picture.box))
        return replace(block, lines=lines, table=table, picture=picture)

    def fitted(self, line: Line, width: float, height: float) -> Line:
        """The line of the upright page, in the bounds of another of this size."""
        across, down = width / self.width, height / self.height
        return replace(
            line,
            left=line.left * across,
            right=line.right * across,
            top=line.top * down,
            bottom=line.bottom * down,
            base=line.base * down,
            size=line.size * down,
        )

    def _box(self, box: Box) -> Box:
        wide, high = round(self.width), round(self.height)
        if self.turns == 1:
            return Box(box.page, left=high - box.bottom, right=high - box.top, top=box.left, bottom=box.right)
        if self.turns == 2:
            return Box(
                box.page, left=wide - box.right, right=wide - box.left, top=high - box.bottom, bottom=high - box.top
            )
        return Box(box.page, left=box.top, right=box.bottom, top=wide - box.right, bottom=wide - box.left)
