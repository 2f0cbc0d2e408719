"""Pictures: the text that is written in them, and each frame as a figure. The pages of a TIFF are units; of other
formats, which have frames for animation, the first frame is read.

Reading text is ocr's, and joining lines is left to paragraphs."""

from __future__ import annotations

import struct
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from common.errors import EmptyFile, UnreadableFile
from rag.parser import ocr
from rag.parser.blocks import PLAIN, Block, BlockKind, Box, FileKind, Picture, Profile, ReadOptions, Unit
from rag.parser.layout import Line, Page, order
from rag.parser.paragraphs import HeadingFinder, to_blocks
from rag.parser.text import clean

# A page of A2 at 300 dpi has 35 million.
MAX_PIXELS = 100_000_000
MAX_FRAMES = 5_000
DEFAULT_DPI = 150.0

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
# Outside of these a resolution is a program's habit and says nothing of the page.
_DPI = (100.0, 2_400.0)
_MAX_POINTS = 14_400.0
_MAX_AUTHOR = 200
# What Pillow's decoders raise for damaged files, by format.
_DAMAGE = (
    *(OSError, EOFError, SyntaxError, ValueError, OverflowError, struct.error),
    *(TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError),
)


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile, or UnreadableFile for a file that is damaged, too large, or no picture."""
    if path.stat().st_size == 0:
        raise EmptyFile(f"{name} is empty")
    with _opened(path, name) as image:
        units = _count_frames(image, name)
        exif = image.getexif()
        author, taken = exif.get(ExifTags.Base.Artist), exif.get(ExifTags.Base.DateTime)
    return Profile(
        kind=FileKind.IMAGE,
        unit=Unit.PAGE,
        units=units,
        author=clean(author).strip()[:_MAX_AUTHOR] if isinstance(author, str) else "",
        created=_iso_time(taken) if isinstance(taken, str) else "",
        scanned=1.0 if options.ocr else 0.0,
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """Of each frame a figure, and then the text in it unless `options.ocr` is off."""
    for index in range(from_unit, min(to_unit, profile.units)):
        number = index + 1
        picture, width, height = frame(path, index)
        box = Box(page=number, left=0, top=0, right=round(width), bottom=round(height))
        yield Block(kind=BlockKind.FIGURE, text="", page=number, picture=Picture(box=box))
        if options.ocr:
            found, upright = ocr.read_scan(picture, width, height)
            lines = order(Page(number, upright.width, upright.height, tuple(found)))
            headings = HeadingFinder(_body_size(lines), {}, has_outline=False)
            yield from map(upright.as_shown, to_blocks(number, lines, headings))


@contextmanager
def _opened(path: Path, name: str) -> Iterator[Image.Image]:
    """The picture, with whatever fails while it is looked at told as what is wrong with the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tags that are not to a format's letter
        try:
            with Image.open(path, formats=_FORMATS) as image:
                _check_size(image, name)
                yield image
        except Image.DecompressionBombError as exc:
            raise UnreadableFile(_too_large(name)) from exc
        except UnidentifiedImageError as exc:
            raise UnreadableFile(f"{name} is damaged, or no picture of a format that is read") from exc
        except _DAMAGE as exc:
            raise UnreadableFile(f"{name} is damaged and can't be read as a picture") from exc


def _check_size(image: Image.Image, name: str) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableFile(_too_large(name))
    if image.width < 1 or image.height < 1:
        raise UnreadableFile(f"{name} has no pixels in it")


def _too_large(name: str) -> str:
    return f"{name} is too large a picture: more than {MAX_PIXELS // 1_000_000} million pixels"


def _count_frames(image: Image.Image, name: str) -> int:
    """One by one: a damaged or hostile file may have any number of them."""
    if image.format != "TIFF":
        return 1
    frames = 1
    while True:
        try:
            image.seek(frames)
        except EOFError:
            image.seek(0)
            return frames
        frames += 1
        if frames > MAX_FRAMES:
            raise UnreadableFile(f"{name} has too many pages: more than {MAX_FRAMES}")


def frame(path: Path, index: int) -> tuple[Image.Image, float, float]:
    """The frame as it is looked at, and its size in points."""
    label = f"{path.name}, page {index + 1}," if index else path.name
    with _opened(path, label) as image:
        if index:
            image.seek(index)
            _check_size(image, label)
        dpi_across, dpi_down = _resolution(image)
        width, height = image.width / dpi_across * 72, image.height / dpi_down * 72
        # A photograph is decoded at no more than it takes to read it.
        image.draft("RGB", (ocr.MAX_SIDE, ocr.MAX_SIDE))
        orientation = image.getexif().get(ExifTags.Base.Orientation)
        if orientation in (5, 6, 7, 8):
            width, height = height, width
        upright = ImageOps.exif_transpose(image)
        shrink = min(1.0, _MAX_POINTS / max(width, height))
        return _on_white(upright), max(1.0, width * shrink), max(1.0, height * shrink)


def _resolution(image: Image.Image) -> tuple[float, float]:
    """Dots an inch, across and down."""
    told = image.info.get("dpi")
    if not isinstance(told, tuple) or len(told) != 2:
        return DEFAULT_DPI, DEFAULT_DPI
    across, down = float(told[0]), float(told[1])
    least, most = _DPI
    # The comparison is false for what is no number.
    if least <= across <= most and least <= down <= most and 0.5 <= across / down <= 2:
        return across, down
    return DEFAULT_DPI, DEFAULT_DPI


def _on_white(image: Image.Image) -> Image.Image:
    """In RGB; what is transparent shows white paper, and deep greys are brought down to eight bits."""
    if image.mode.startswith("I") or image.mode == "F":
        low, high = image.getextrema()
        span = float(high) - float(low) or 1.0  # type: ignore[arg-type]  # one band has one pair
        image = image.convert("F").point(lambda value: value * (255 / span) + -float(low) * (255 / span)).convert("L")  # type: ignore[arg-type]
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        paper = Image.new("RGB", image.size, "white")
        paper.paste(layered, mask=layered.getchannel("A"))
        return paper
    return image.convert("RGB")


def _body_size(lines: Sequence[Line]) -> float:
    """The size that most letters are set in."""
    letters: dict[float, int] = defaultdict(int)
    for line in lines:
        letters[line.size] += len(line.text)
    return max(letters, key=lambda size: (letters[size], -size), default=0.0)


def _iso_time(taken: str) -> str:
    """A time as cameras write it, "2024:05:06 07:08:09", in the usual form; "" if it is none."""
    day, _, time = clean(taken).strip().partition(" ")
    parts = [*day.split(":"), *time.split(":")]
    if len(parts) != 6 or not all(part.isdecimal() and part.isascii() for part in parts) or parts[0] == "0000":
        return ""
    return f"{parts[0]}-{parts[1]}-{parts[2]}T{time}"
