"""Scans that lie on their side or their head: the text is read, and its boxes are where a reader sees it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from rag.parser import image, ocr, pdf
from rag.parser.blocks import Block, BlockKind, Box, Cell, Picture, PlacedLine, Table
from rag.parser.layout import Line
from rag.parser.page_picture import answers
from rag.parser.picture_process import Made, PictureRequest, Shot
from rag.parser.turned import Upright
from tests import pdfs

_WIDTH, _HEIGHT = 400, 200
_TEXT = "Minutes of the harbour board"
# Where the text is seen: left, right, top, bottom, in points of the upright page.
_SEEN = (30, 340, 36, 66)


def _scan() -> Image.Image:
    picture = Image.new("RGB", (2 * _WIDTH, 2 * _HEIGHT), "white")
    ImageDraw.Draw(picture).text((60, 75), _TEXT, font=ImageFont.load_default(46), fill="black")
    return picture


def _only_text(blocks: list[Block]) -> Block:
    (block,) = (block for block in blocks if block.kind is not BlockKind.FIGURE)
    assert block.text == _TEXT
    return block


def _is_near(box: Box, seen: tuple[int, int, int, int]) -> bool:
    got = (box.left, box.right, box.top, box.bottom)
    return all(abs(one - other) <= 8 for one, other in zip(got, seen, strict=True))


# A page's own size and the matrix of its picture, so that it is upright once the page is turned by /Rotate.
_ROTATED = {
    90: ((_HEIGHT, _WIDTH), (0, _WIDTH, -_HEIGHT, 0, _HEIGHT, 0)),
    180: ((_WIDTH, _HEIGHT), (-_WIDTH, 0, 0, -_HEIGHT, _WIDTH, _HEIGHT)),
    270: ((_HEIGHT, _WIDTH), (0, -_WIDTH, _HEIGHT, 0, 0, _WIDTH)),
}


@pytest.mark.parametrize("angle", sorted(_ROTATED))
def test_boxes_of_a_scan_with_a_rotation_are_where_the_page_shows_it(tmp_path: Path, angle: int) -> None:
    (wide, high), matrix = _ROTATED[angle]
    picture = _scan().convert("L")
    data = picture.tobytes()
    head = b"/Type /XObject /Subtype /Image /ColorSpace /DeviceGray /BitsPerComponent 8"
    path = pdfs.write_raw(
        tmp_path / "a.pdf",
        [b"q %d %d %d %d %d %d cm /I Do Q" % matrix],
        resources=b"/XObject << /I 4 0 R >>",
        page=b"/MediaBox [0 0 %d %d] /Rotate %d" % (wide, high, angle),
        more=b"4 0 obj\n<< %b /Width %d /Height %d /Length %d >>\nstream\n%b\nendstream\nendobj\n"
        % (head, *picture.size, len(data), data),
    )
    profile = pdf.profile(path, "a.pdf")
    block = _only_text(list(pdf.read(path, profile, 0, 1)))
    (box,) = block.boxes
    assert _is_near(box, _SEEN)
    assert _ink(path, box, tmp_path / "cut.png") > 0.5


def _ink(path: Path, box: Box, out: Path) -> float:
    """How much of the width of what is shown at the box has ink in it."""
    request = PictureRequest(1, str(path), path.name, (Shot(str(out), page=box.page, box=box),))
    assert isinstance(next(iter(answers(request))), Made)
    with Image.open(out) as shown:
        return float((np.asarray(shown.convert("L")).min(axis=0) < 100).mean())


@pytest.mark.parametrize(
    ("turn", "seen"),
    [
        (Image.Transpose.ROTATE_90, (36, 66, _WIDTH - 340, _WIDTH - 30)),
        (Image.Transpose.ROTATE_180, (_WIDTH - 340, _WIDTH - 30, _HEIGHT - 66, _HEIGHT - 36)),
        (Image.Transpose.ROTATE_270, (_HEIGHT - 66, _HEIGHT - 36, 30, 340)),
    ],
)
def test_boxes_in_a_picture_are_where_it_shows_its_text(
    tmp_path: Path, turn: Image.Transpose, seen: tuple[int, int, int, int]
) -> None:
    path = tmp_path / "a.png"
    _scan().transpose(turn).save(path, dpi=(144, 144))
    (box,) = _only_text(list(image.read(path, image.profile(path, "a.png"), 0, 1))).boxes
    assert _is_near(box, seen)


@pytest.mark.parametrize(
    ("turns", "box"),
    [
        (0, Box(1, 10, 30, 5, 9)),
        (1, Box(1, 41, 45, 10, 30)),
        (2, Box(1, 70, 90, 41, 45)),
        (3, Box(1, 5, 9, 70, 90)),
    ],
)
def test_every_place_of_a_block_is_turned_back(turns: int, box: Box) -> None:
    """An upright page of 100 x 50 points."""
    placed = Box(1, left=10, right=30, top=5, bottom=9)
    table = Table(rows=((Cell("x"),),), places=(placed,))
    block = Block(BlockKind.TABLE, "x", 1, lines=(PlacedLine(0, placed),), table=table, picture=Picture(box=placed))
    shown = Upright(100, 50, turns).as_shown(block)
    assert shown.table is not None and shown.picture is not None
    assert (shown.boxes, shown.table.places, shown.picture.box) == ((box,), (box,), box)


def test_lines_of_a_page_on_its_side_stay_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """For pages that are ordered by the frame they lie in."""
    line = Line("x", left=20, right=100, top=10, bottom=20, base=18, size=10)
    monkeypatch.setattr(ocr, "read_scan", lambda *_: ocr.Scan([line], Upright(200, 100, 3)))
    (fitted,) = ocr.read_lines(Image.new("L", (10, 20)), 100, 200)
    assert (fitted.left, fitted.right, fitted.top, fitted.bottom) == (10, 50, 20, 40)
    assert (fitted.base, fitted.size, fitted.text) == (36, 20, "x")
