"""Pictures: their pages, their size in points, the text in them, and how bad files end."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from common.errors import EmptyFile, UnreadableFile
from rag.parser import image as parser
from rag.parser import ocr
from rag.parser.blocks import Block, BlockKind, Box, FileKind, Picture, Profile, ReadOptions, Unit
from rag.parser.layout import Line
from rag.parser.turned import Upright

_NO_OCR = ReadOptions(ocr=False)


def _read(path: Path, options: ReadOptions = _NO_OCR) -> list[Block]:
    profile = parser.profile(path, path.name)
    return list(parser.read(path, profile, 0, profile.units, options))


def _save(path: Path, size: tuple[int, int] = (300, 150), mode: str = "RGB", **options: object) -> Path:
    Image.new(mode, size).save(path, **options)
    return path


def _scan(lines: list[Line], width: float, height: float) -> ocr.Scan:
    return ocr.Scan(lines, Upright(width, height, 0))


def _png_of_size(width: int, height: int) -> bytes:
    """A picture that says how large it is, and has next to nothing in it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "webp", "bmp", "gif"])
def test_a_picture_is_one_figure(tmp_path: Path, suffix: str) -> None:
    path = _save(tmp_path / f"a.{suffix}")
    assert parser.profile(path, path.name) == Profile(kind=FileKind.IMAGE, unit=Unit.PAGE, units=1, scanned=1.0)
    box = Box(page=1, left=0, right=144, top=0, bottom=72)
    assert _read(path) == [Block(kind=BlockKind.FIGURE, text="", page=1, picture=Picture(box=box))]


def test_the_resolution_gives_the_size_of_the_page(tmp_path: Path) -> None:
    def size(name: str, dpi: tuple[float, float]) -> tuple[int, int]:
        (figure,) = _read(_save(tmp_path / name, (1000, 500), dpi=dpi))
        assert figure.picture is not None and figure.picture.box is not None
        return figure.picture.box.right, figure.picture.box.bottom

    assert size("scan.png", (300, 300)) == (240, 120)
    assert size("fax.tif", (200, 100)) == (360, 360)
    assert size("screen.jpg", (72, 72)) == size("absurd.png", (1, 1)) == size("odd.png", (2000, 100)) == (480, 240)


def test_a_turned_photograph_is_read_upright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(ocr, "read_scan", lambda picture, *size: seen.append(picture.size) or _scan([], *size))
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x0132] = "2024:05:06 07:08:09"
    exif[0x013B] = "A. Painter"
    path = _save(tmp_path / "a.jpg", exif=exif)
    profile = parser.profile(path, "a.jpg")
    assert (profile.author, profile.created) == ("A. Painter", "2024-05-06T07:08:09")
    (figure,) = _read(path, ReadOptions())
    assert figure.picture == Picture(box=Box(page=1, left=0, right=72, top=0, bottom=144)) and seen == [(150, 300)]


def test_the_pages_of_a_tiff(tmp_path: Path) -> None:
    first, *others = (Image.new("L", (150 * number, 150)) for number in (1, 2, 3))
    first.save(tmp_path / "a.tif", save_all=True, append_images=others)
    profile = parser.profile(tmp_path / "a.tif", "a.tif")
    assert profile.units == 3
    pages = [
        (block.page, block.picture.box.right)
        for block in parser.read(tmp_path / "a.tif", profile, 1, 9, _NO_OCR)
        if block.picture and block.picture.box
    ]
    assert pages == [(2, 144), (3, 216)]


def test_of_an_animation_the_first_frame_is_read(tmp_path: Path) -> None:
    frames = [Image.new("L", (150, 150), shade) for shade in (0, 99, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert len(_read(tmp_path / "a.gif")) == 1


def test_text_follows_its_figure(tmp_path: Path) -> None:
    """The one test that really reads: a heading and a line as a screenshot has them."""
    picture = Image.new("RGB", (560, 160), "white")
    draw = ImageDraw.Draw(picture)
    draw.text((20, 15), "Opening hours", font=ImageFont.load_default(44), fill="black")
    draw.text((20, 100), "Monday to Friday from 9 to 17", font=ImageFont.load_default(24), fill="black")
    picture.save(tmp_path / "a.png")
    figure, heading, line = _read(tmp_path / "a.png", ReadOptions())
    assert figure.kind is BlockKind.FIGURE
    assert (heading.text, heading.page) == ("Opening hours", 1)
    assert (line.kind, line.text) == (BlockKind.PARAGRAPH, "Monday to Friday from 9 to 17")
    assert heading.boxes[0].bottom <= line.boxes[0].top and line.boxes[0].left < 14


def test_a_picture_without_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "read_scan", lambda _, *size: _scan([], *size))
    assert [block.kind for block in _read(_save(tmp_path / "a.png"), ReadOptions())] == [BlockKind.FIGURE]


def test_large_type_is_a_heading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [Line("Title", 0, 50, 0, 20, 18, 18.0), Line("The body of the text.", 0, 90, 30, 40, 38, 10.0)]
    monkeypatch.setattr(ocr, "read_scan", lambda _, *size: _scan(lines, *size))
    blocks = _read(_save(tmp_path / "a.png"), ReadOptions())
    assert [(block.kind, block.level) for block in blocks[1:]] == [(BlockKind.HEADING, 1), (BlockKind.PARAGRAPH, 0)]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "I", "F", "CMYK"])
def test_any_mode_becomes_black_on_white(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Image.Image] = []
    monkeypatch.setattr(ocr, "read_scan", lambda picture, *size: seen.append(picture) or _scan([], *size))
    picture = Image.fromarray(np.array([[255, 0]] * 2, dtype=np.uint8))
    if mode in ("LA", "RGBA"):
        picture = Image.merge("LA", (Image.new("L", (2, 2)), Image.eval(picture, lambda shade: 255 - shade)))
    if mode in ("I;16", "I", "F"):
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        deep = Image.fromarray(np.array([[60_000, 100]] * 2, dtype=kind))
    else:
        deep = picture.convert(mode)
    deep.save(tmp_path / "a.tif")
    _read(tmp_path / "a.tif", ReadOptions())
    assert seen[0].mode == "RGB"
    assert [seen[0].getpixel((column, 0)) for column in (0, 1)] == [(255, 255, 255), (0, 0, 0)]


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    for side in (11_000, 30_000):
        (tmp_path / "a.png").write_bytes(_png_of_size(side, side))
        with pytest.raises(UnreadableFile, match=r"a\.png is too large a picture: more than 100 million pixels"):
            parser.profile(tmp_path / "a.png", "a.png")


def test_too_many_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "MAX_FRAMES", 2)
    frames = [Image.new("1", (8, 8)) for _ in range(3)]
    frames[0].save(tmp_path / "a.tif", save_all=True, append_images=frames[1:])
    with pytest.raises(UnreadableFile, match="too many pages: more than 2"):
        parser.profile(tmp_path / "a.tif", "a.tif")


def test_empty_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"")
    with pytest.raises(EmptyFile):
        parser.profile(path, "a.png")
    for content in (b"hello", b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n", b"II*\0", b"GIF89a", b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match=r"a\.png is damaged"):
            parser.profile(path, "a.png")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "webp", "bmp", "gif"])
def test_cut_and_scribbled_files(tmp_path: Path, suffix: str) -> None:
    """Whatever is left of a file is read or refused, never anything else."""
    noise = np.random.default_rng(1).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(noise).save(path)
    whole = path.read_bytes()
    scribbles = np.random.default_rng(2)
    broken = [whole[:size] for size in range(1, len(whole), max(1, len(whole) // 40))]
    for _ in range(60):
        data = bytearray(whole)
        for place in scribbles.integers(0, min(len(data), 400), 4):
            data[place] = scribbles.integers(0, 256)
        broken.append(bytes(data))
    refused = 0
    for data in broken:
        path.write_bytes(data)
        try:
            _read(path)
        except UnreadableFile:
            refused += 1
    assert refused >= 20
