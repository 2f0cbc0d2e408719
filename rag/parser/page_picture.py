"""The process that draws: `python -m rag.parser.page_picture`, which picture_process.py starts and speaks with.

What draws a file may crash, hang or eat memory, so this never runs in a server's own process. A shot is a page, a
piece of a page, or a picture inside a document; what is written was decoded and drawn anew as a PNG, so nothing of the
file's own bytes is handed on."""

from __future__ import annotations

import io
import math
import os
import resource
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from common.errors import EncryptedFile, InvalidInput, PagemillError, PagesOutside, UnreadableFile
from common.process import die_with_parent
from rag.parser import kinds
from rag.parser.blocks import Box, FileKind
from rag.parser.picture_parts import read_part
from rag.parser.picture_process import MAX_WIDTH, SCALE_KEY, Made, PictureRequest, Refused, Shot

MAX_PIXELS = 12_000_000
_MAX_SOURCE_PIXELS = 100_000_000
_POINTS_PER_INCH = 72
# Never by Pillow's own guess among all that it knows: some of its formats run other programs.
_FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP")
# What Pillow's decoders raise for damaged files, by format.
_DAMAGE = (
    *(OSError, EOFError, SyntaxError, ValueError, OverflowError, struct.error, Image.DecompressionBombError),
    *(TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError),
)
_MEMORY_BYTES = 2 << 30
_OUTPUT_BYTES = 64 << 20
_CPU_S = 120
_NICE = 5

Drawn = tuple[Image.Image, float]


def answers(request: PictureRequest) -> Iterator[Made | Refused]:
    """Draw the shots one after the other; an error of one is its answer."""
    try:
        with _source(request) as draw:
            for shot in request.shots:
                try:
                    picture, scale = draw(shot)
                    picture.save(shot.out, "PNG", compress_level=4, pnginfo=_note(scale))
                    yield Made(scale)
                except PagemillError as exc:
                    yield Refused(exc.code, exc.public_message)
    except PagemillError as exc:
        yield from (Refused(exc.code, exc.public_message) for _ in request.shots)


def _note(scale: float) -> PngInfo:
    """In the file, so that it tells how large the page is that it shows."""
    note = PngInfo()
    note.add_text(SCALE_KEY, repr(scale))
    return note


@contextmanager
def _source(request: PictureRequest) -> Iterator[Callable[[Shot], Drawn]]:
    """What draws the pages of this file."""
    path, name = Path(request.path), request.name
    kind = kinds.detect(path, name)
    if kind is FileKind.PDF:
        document = _open_pdf(path, request)
        try:
            yield lambda shot: _pdf_page(document, name, shot)
        finally:
            document.close()
    elif kind is FileKind.IMAGE:
        from rag.parser import image  # numpy, which the others don't need

        frames = image.profile(path, name).units
        yield lambda shot: _frame(path, name, frames, shot)
    else:
        yield lambda shot: _part(path, name, kind, shot)


def _open_pdf(path: Path, request: PictureRequest) -> pdfium.PdfDocument:
    try:
        document = pdfium.PdfDocument(path, password=request.password or None)
    except pdfium.PdfiumError as exc:
        if exc.err_code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise EncryptedFile(f"{request.name} is encrypted and needs a password") from exc
        raise UnreadableFile(f"{request.name} is damaged and can't be opened as a PDF") from exc
    if document.get_formtype() != pdfium_c.FORMTYPE_NONE:
        document.init_forms()  # without it, what is filled in is not drawn
    return document


def _pdf_page(document: pdfium.PdfDocument, name: str, shot: Shot) -> Drawn:
    _require_page(name, shot, len(document))
    try:
        page = document[shot.page - 1]
    except pdfium.PdfiumError as exc:
        raise UnreadableFile(f"page {shot.page} is damaged and can't be drawn") from exc
    try:
        width, height = page.get_size()
        left, top, right, bottom = _region(shot.box, width, height)
        scale = _scale(shot, right - left, bottom - top)
        bitmap = page.render(scale=scale, crop=(left, height - bottom, width - right, top))
        return bitmap.to_pil().convert("RGB"), scale
    except (pdfium.PdfiumError, ValueError) as exc:
        raise UnreadableFile(f"page {shot.page} is damaged and can't be drawn") from exc
    finally:
        page.close()


def _frame(path: Path, name: str, frames: int, shot: Shot) -> Drawn:
    from rag.parser import image

    _require_page(name, shot, frames)
    return _cut(*image.frame(path, shot.page - 1), shot)


def _part(path: Path, name: str, kind: FileKind, shot: Shot) -> Drawn:
    """A picture inside a document. A point of it is a pixel."""
    if not shot.part:
        raise InvalidInput(f"{name} has no pages to show: only PDFs and pictures have")
    data = read_part(path, name, kind, shot.part)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_SOURCE_PIXELS:
                raise UnreadableFile(f"{shot.part} is too large a picture to be shown")
            upright = ImageOps.exif_transpose(image)
            return _cut(_on_white(upright), upright.width, upright.height, shot)
    except _DAMAGE as exc:
        raise UnreadableFile(f"{shot.part} is no picture that can be shown") from exc


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    layered = image.convert("RGBA")
    paper = Image.new("RGB", image.size, "white")
    paper.paste(layered, mask=layered.getchannel("A"))
    return paper


def _cut(picture: Image.Image, width: float, height: float, shot: Shot) -> Drawn:
    """The place asked for, of a picture that is `width` x `height` points; never enlarged."""
    left, top, right, bottom = _region(shot.box, width, height)
    pixels = picture.width / width
    scale = min(pixels, _scale(shot, right - left, bottom - top))
    down = picture.height / height
    sides = (int(left * pixels), int(top * down), round(right * pixels), round(bottom * down))
    cut = picture.crop((sides[0], sides[1], max(sides[0] + 1, sides[2]), max(sides[1] + 1, sides[3])))
    size = max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale))
    return cut.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0), scale


def _require_page(name: str, shot: Shot, pages: int) -> None:
    if shot.part:
        raise InvalidInput(f"{name} has no pictures with names")
    if not 1 <= shot.page <= pages:
        count = "1 page" if pages == 1 else f"{pages} pages"
        raise PagesOutside(f"page {shot.page} is outside this document, which has {count}")


def _region(box: Box | None, width: float, height: float) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of what is shown. Raises InvalidInput for a box that is not on the page."""
    if box is None:
        return 0.0, 0.0, width, height
    left, right = max(0.0, float(box.left)), min(width, float(box.right))
    top, bottom = max(0.0, float(box.top)), min(height, float(box.bottom))
    if right - left < 1 or bottom - top < 1:
        raise InvalidInput(f"the place asked for is not on page {box.page}")
    return left, top, right, bottom


def _scale(shot: Shot, width: float, height: float) -> float:
    """Pixels of a point, as asked for, as far as the bounds of a picture allow; at least a pixel in all."""
    asked = shot.width / width if shot.width else shot.dpi / _POINTS_PER_INCH
    most = min(MAX_WIDTH / width, math.sqrt(MAX_PIXELS / (width * height)))
    return max(min(asked, most), 1 / min(width, height))


def main() -> None:
    _limit()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=PictureRequest)
    die_with_parent(signal.SIGKILL, request.parent)
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = _MAX_SOURCE_PIXELS
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(sys.stderr.fileno(), 1)  # libraries that print must not answer
    for answer in answers(request):
        replies.write(msgspec.json.encode(answer) + b"\n")
        replies.flush()


def _limit() -> None:
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _OUTPUT_BYTES),
        (resource.RLIMIT_CPU, _CPU_S),
    ):
        resource.setrlimit(what, (most, most))
    os.nice(_NICE)


if __name__ == "__main__":
    main()
