"""Reads the text in a picture: the lines that a person sees, with their places on the page.

Owns the recogniser (rapidocr, with the models that its wheel carries: nothing is ever downloaded). In what order
lines are read is layout's, and joining them is left to paragraphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from PIL import Image

from rag.parser.layout import Line, clamp
from rag.parser.text import clean
from rag.parser.turned import Upright

# Ranges of a document are read side by side, and threads that wait for each other on a busy machine take longer.
THREADS = 1
# Pixels; a larger picture is made smaller first. A page of A4 at 150 dpi has 1,754.
MAX_SIDE = 2_000
# A picture far taller than wide, such as a long screenshot, is read in at most so many strips.
MAX_STRIPS = 8

_TALL = 2.2
# A strip is cut in its lowest third, where a few rows show nothing.
_EARLIEST_CUT = 2 * MAX_SIDE // 3
_QUIET_ROWS = 9
# Pixels; the recogniser enlarges a picture whose shorter side has fewer. A strip is given a margin instead.
_MIN_SIDE = 736
# Less sure than this, a line is dropped; a page as a whole is tried on its head.
_MIN_SCORE = 0.6
_SURE_SCORE = 0.8
_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
# The box found around a line, against the size of its type, and how far its letters stand above the box's bottom.
_SIZE_OF_HEIGHT = 0.8
_DESCENT = 0.22
# Heights of boxes vary with the letters in them: sizes this near to the usual one count as the same.
_SAME_SIZE = 1.28
_SIZE_STEP = 1.25

Pixels = npt.NDArray[np.uint8]
_NOTHING: Pixels = np.zeros((0, 0, 3), dtype=np.uint8)


class _Found(NamedTuple):
    """A line of text, how sure it is (0 to 1), and the corners of its box: clockwise from the top left."""

    text: str
    score: float
    corners: npt.NDArray[np.float32]


class Scan(NamedTuple):
    """The lines of a page from top to bottom, and how it was turned to read them: their places are upright."""

    lines: list[Line]
    upright: Upright


def read_scan(picture: Pixels | Image.Image, width: float, height: float) -> Scan:
    """The lines in a picture of a page of `width` x `height` points; none if there are none.

    The picture is RGB or grey, and shows the whole page. A page that lies on its side or its head is read upright.
    Takes seconds."""
    pixels = _to_rgb(picture) if width > 0 and height > 0 else _NOTHING
    if 0 in pixels.shape:
        return Scan([], Upright(width, height, 0))
    turns = 0
    if pixels.shape[0] <= MAX_SIDE:
        turns, found = _upright(pixels)
    else:
        found = _by_strips(pixels)
    if turns % 2:
        width, height = height, width
    rows, columns = np.rot90(pixels, turns).shape[:2]
    scale = np.array([width / columns, height / rows])
    lines = [line for each in found if (line := _to_line(each, scale, width, height))]
    return Scan(_levelled(_even_sized(lines)), Upright(width, height, turns))


def read_lines(picture: Pixels | Image.Image, width: float, height: float) -> list[Line]:
    """The lines of a scan alone. Those of a page that lies on its side are fitted to `width` x `height`."""
    lines, upright = read_scan(picture, width, height)
    return [upright.fitted(line, width, height) for line in lines] if upright.turns % 2 else lines


def _to_rgb(picture: Pixels | Image.Image) -> Pixels:
    """Pixels of at most MAX_SIDE each way, or of some strips of that, made smaller without losing thin strokes."""
    if isinstance(picture, np.ndarray):
        if 0 in picture.shape:
            return _NOTHING
        if max(picture.shape[:2]) <= MAX_SIDE and picture.ndim == 3 and picture.shape[2] == 3:
            return picture
        picture = Image.fromarray(picture)
    picture = picture.convert("RGB")
    is_tall = picture.height > _TALL * picture.width
    most = (MAX_SIDE, _EARLIEST_CUT * MAX_STRIPS if is_tall else MAX_SIDE)
    if picture.width > most[0] or picture.height > most[1]:
        picture.thumbnail(most, Image.Resampling.LANCZOS)
    return np.asarray(picture)


def _by_strips(pixels: Pixels) -> list[_Found]:
    """The sure lines of a tall picture, read from the top in strips that are cut between lines."""
    found: list[_Found] = []
    top = 0
    while top < len(pixels):
        strip = pixels[top : top + MAX_SIDE]
        if top + MAX_SIDE < len(pixels):
            strip = strip[: _quiet_row(strip)]
        shift = np.array([0, top], dtype=np.float32)
        found += [each._replace(corners=each.corners + shift) for each in _recognise(strip) if each.score >= _MIN_SCORE]
        top += len(strip)
    return found


def _quiet_row(strip: Pixels) -> int:
    """The row in the lowest third around which the pixels differ least from their neighbours."""
    lowest = strip[_EARLIEST_CUT:].max(axis=2).astype(np.int16)
    busy = np.abs(np.diff(lowest, axis=1)).sum(axis=1, dtype=np.int64)
    return _EARLIEST_CUT + int(np.argmin(np.convolve(busy, np.ones(_QUIET_ROWS), mode="same")))


def _upright(pixels: Pixels) -> tuple[int, list[_Found]]:
    """How often the picture is turned by a quarter, to the left, until its text stands; and the lines that are sure."""
    turns, found = 0, _recognise(pixels)
    if _lies_on_side(found):
        turns, found = 1, _recognise(np.rot90(pixels))
    if found and _sureness(found) < _SURE_SCORE:
        other = _recognise(np.rot90(pixels, turns + 2))
        if _sureness(other) > _sureness(found):
            turns, found = turns + 2, other
    return turns, [each for each in found if each.score >= _MIN_SCORE]


def _lies_on_side(found: Sequence[_Found]) -> bool:
    """Whether most text stands in boxes that are taller than wide."""
    tall = sum(_sides(each.corners)[1] > 2 * _sides(each.corners)[0] for each in found)
    return tall > 0.6 * len(found)


def _sides(corners: npt.NDArray[np.float32]) -> tuple[float, float]:
    """How wide and how tall a box is along its own edges."""
    return float(np.linalg.norm(corners[1] - corners[0])), float(np.linalg.norm(corners[3] - corners[0]))


def _sureness(found: Sequence[_Found]) -> float:
    """The mean score of a letter."""
    letters = sum(len(each.text) for each in found)
    return sum(each.score * len(each.text) for each in found) / letters if letters else 0.0


def _padded(pixels: Pixels) -> Pixels:
    rows, columns = pixels.shape[:2]
    least = min(_MIN_SIDE, max(rows, columns))
    right, below = max(0, least - columns), max(0, least - rows)
    if not right and not below:
        return pixels
    return np.pad(pixels, ((0, below), (0, right), (0, 0)), constant_values=255)


def _recognise(pixels: Pixels) -> list[_Found]:
    blue_first = np.ascontiguousarray(_padded(pixels)[:, :, ::-1])
    result = _engine()(blue_first)
    if result.boxes is None or result.txts is None:
        return []
    return [_Found(*each) for each in zip(result.txts, result.scores, result.boxes, strict=True)]


@cache
def _engine() -> Any:
    """The recogniser, loaded with the first picture: half a second, and a library that few files need."""
    from rapidocr import RapidOCR

    spec = find_spec("rapidocr")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("rapidocr has no files")
    folder = Path(spec.origin).parent / "models"
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.text_score": 0.0,
            # Turns lines on their head, and garbles some that were not: whole pages are turned instead.
            "Global.use_cls": False,
            "Global.max_side_len": MAX_SIDE,
            "Det.limit_side_len": _MIN_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": THREADS,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "EngineConfig.onnxruntime.enable_cpu_mem_arena": False,
            # By path: a model that is looked up by name is downloaded where it is missing.
            **{f"{step}.model_path": str(folder / file) for step, file in _MODELS.items()},
        }
    )


def _to_line(found: _Found, scale: npt.NDArray[np.float64], width: float, height: float) -> Line | None:
    """The line in points of the page; None if nothing is left of it."""
    text = " ".join(clean(found.text).split())
    if not text:
        return None
    places = (found.corners * scale).astype(np.float32)
    left, top = (float(value) for value in places.min(axis=0))
    right, bottom = (float(value) for value in places.max(axis=0))
    # Along its own edge: the box of a slanted line is taller than the line itself.
    tall = _sides(places)[1]
    hyphened = len(text) > 2 and text[-1] == "-" and text[-2].isalpha()
    return Line(
        text=text[:-1] if hyphened else text,
        left=clamp(left, width),
        right=clamp(right, width),
        top=clamp(top, height),
        bottom=clamp(bottom, height),
        base=clamp(bottom - _DESCENT * tall, height),
        size=tall * _SIZE_OF_HEIGHT,
        hyphened=hyphened,
    )


def _even_sized(lines: Sequence[Line]) -> list[Line]:
    """Sizes in steps from the usual one: paragraphs and headings are told by what is the same and what is not."""
    if not lines:
        return []
    usual = median(line.size for line in lines)
    if not usual:
        return list(lines)
    return [replace(line, size=usual * _SIZE_STEP ** _steps(line.size / usual)) for line in lines]


def _steps(ratio: float) -> int:
    if ratio <= 0 or 1 / _SAME_SIZE < ratio < _SAME_SIZE:
        return 0
    return round(math.log(ratio, _SIZE_STEP))


def _levelled(lines: Sequence[Line]) -> list[Line]:
    """Pieces of one row stand on one base, left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda each: each.base):
        if rows and line.base - rows[-1][0].base < 0.4 * min(line.size, rows[-1][0].size):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [
        replace(line, base=median(each.base for each in row))
        for row in rows
        for line in sorted(row, key=lambda each: each.left)
    ]
