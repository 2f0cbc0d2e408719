"""Pages with what was found on them: every block in a box with its number in reading order, every chunk outlined."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from api.commands.options import err, printable, say
from api.commands.parse_output import Reading
from common.errors import InvalidInput
from rag.parser.blocks import Block, BlockKind, Box
from rag.parser.picture_process import Made, Refused, Shot, draw

DPI = 100
_AT_ONCE = 8
_CHUNK = (150, 150, 150)
_CHUNK_MARGIN = 3
_COLOURS = {
    BlockKind.HEADING: (200, 30, 30),
    BlockKind.PARAGRAPH: (30, 90, 200),
    BlockKind.LIST_ITEM: (0, 130, 130),
    BlockKind.TABLE: (20, 140, 40),
    BlockKind.FIGURE: (150, 40, 170),
    BlockKind.CAPTION: (200, 110, 0),
    BlockKind.FOOTNOTE: (120, 90, 60),
    BlockKind.CODE: (60, 60, 60),
}


def draw_pages(file: Path, folder: Path, reading: Reading, password: str, pages: Sequence[int]) -> Iterator[Path]:
    """Write `page-0001.png` and so on, and give each path. A page that can't be drawn is told on stderr."""
    _make(folder)
    numbered = list(enumerate(reading.blocks, start=1))
    with tempfile.TemporaryDirectory(prefix="pagemill-") as made:
        for first in range(0, len(pages), _AT_ONCE):
            some = pages[first : first + _AT_ONCE]
            shots = [Shot(str(Path(made) / f"page-{page:04}.png"), page=page, dpi=DPI) for page in some]
            for page, shot, answer in zip(some, shots, draw(file, file.name, shots, password), strict=True):
                if isinstance(answer, Refused):
                    say(f"pagemill: page {page} can't be drawn: {printable(answer.message)}", err, "red")
                    continue
                blocks = [(number, block) for number, block in numbered if any(b.page == page for b in places(block))]
                chunks = [[box for box in chunk.boxes if box.page == page] for chunk in reading.chunks]
                found = _Found(page, blocks, [boxes for boxes in chunks if boxes])
                yield _marked(Path(shot.out), folder, answer, found)


def places(block: Block) -> tuple[Box, ...]:
    """Where a block stands: its lines, else its table's rows, else its picture."""
    if block.lines:
        return block.boxes
    if block.table is not None and block.table.places:
        return (_around(block.table.places),)
    return (block.picture.box,) if block.picture is not None and block.picture.box is not None else ()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise _unwritable(folder, exc) from exc


class _Found(NamedTuple):
    """What stands on a page: numbered blocks, which may also stand on others, and the boxes of each chunk there."""

    page: int
    blocks: Sequence[tuple[int, Block]]
    chunks: Sequence[Sequence[Box]]


def _marked(drawn: Path, folder: Path, made: Made, found: _Found) -> Path:
    place = folder / drawn.name
    with Image.open(drawn, formats=("PNG",)) as picture:
        canvas = picture.convert("RGB")
    pen = ImageDraw.Draw(canvas)
    for boxes in found.chunks:
        pen.rectangle(_pixels(_around(boxes), made.scale, _CHUNK_MARGIN), outline=_CHUNK, width=2)
    for number, block in found.blocks:
        colour = _COLOURS[block.kind]
        for box in (box for box in places(block) if box.page == found.page):
            sides = _pixels(box, made.scale)
            pen.rectangle(sides, outline=colour, width=1)
            _label(pen, sides[:2], str(number), colour)
    try:
        canvas.save(place, "PNG")
    except OSError as exc:
        raise _unwritable(place, exc) from exc
    return place


def _label(pen: ImageDraw.ImageDraw, corner: tuple[float, float], text: str, colour: tuple[int, int, int]) -> None:
    """To the left of the corner, so that it hides nothing; at the edge of the picture where there is no room."""
    font = ImageFont.load_default(11)
    width = pen.textlength(text, font=font) + 4
    left, top = max(0.0, corner[0] - width), max(0.0, corner[1])
    pen.rectangle((left, top, left + width, top + 13), fill=colour)
    pen.text((left + 2, top), text, fill="white", font=font)


def _around(boxes: Sequence[Box]) -> Box:
    return Box(
        page=boxes[0].page,
        left=min(box.left for box in boxes),
        right=max(box.right for box in boxes),
        top=min(box.top for box in boxes),
        bottom=max(box.bottom for box in boxes),
    )


def _pixels(box: Box, scale: float, margin: int = 0) -> tuple[float, float, float, float]:
    """Left, top, right, bottom; never inside out."""
    left, top = box.left * scale - margin, box.top * scale - margin
    return left, top, max(left, box.right * scale + margin), max(top, box.bottom * scale + margin)


def _unwritable(path: Path, exc: OSError) -> InvalidInput:
    return InvalidInput(f"{printable(str(path))} can't be written: {exc.strerror or exc}")
