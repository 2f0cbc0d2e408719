"""Pictures that are in an HTML page or an RTF file itself: figures with their names, by which they can be shown."""

from __future__ import annotations

import base64
import io
import random
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
from PIL import Image

from rag.parser import html, registry, rtf
from rag.parser.blocks import Block, BlockKind, Picture
from rag.parser.html_pictures import content
from rag.parser.page_picture import answers
from rag.parser.picture_process import Made, PictureRequest, Refused, Shot
from tests import pdfs


def _picture(size: tuple[int, int] = (40, 20), form: str = "PNG") -> bytes:
    """Of noise, so that it has the bytes of a real one."""
    out = io.BytesIO()
    Image.frombytes("RGB", size, random.Random(3).randbytes(3 * size[0] * size[1])).save(out, form)
    return out.getvalue()


def _address(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _figures(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return [block for block in registry.read(path, profile, 0, 1) if block.kind is BlockKind.FIGURE]


def _parts(path: Path) -> list[tuple[str, str]]:
    return [(block.text, block.picture.part if block.picture else "") for block in _figures(path)]


def _draw(path: Path, part: str, out: Path) -> Made | Refused:
    (answer,) = answers(PictureRequest(1, str(path), path.name, (Shot(str(out), part=part),)))
    return answer


def _size(path: Path, part: str) -> tuple[int, int]:
    out = path.with_suffix(".out")
    assert isinstance(_draw(path, part, out), Made)
    with Image.open(out) as shown:
        return shown.size


def _page(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "a.html"
    path.write_text(f"<html><body>{body}</body></html>")
    return path


def test_pictures_of_a_page_are_shown_by_their_names(tmp_path: Path) -> None:
    dot, small, large = _address(b"x"), _address(_picture()), _address(_picture((60, 30), "JPEG"), "jpeg")
    path = _page(
        tmp_path,
        f"<p>Text</p><img src='{dot}'><img alt='A cat' src='{small}'><nav><img src='{small}'></nav>"
        f"<p>Words <img src='DATA:image/JPEG{large[len('data:image/jpeg') :]}'> go on.</p>"
        f"<img src='https://example.org/a.png' alt='Far away'>",
    )
    assert _parts(path) == [("A cat", "data:2"), ("", "data:3"), ("Far away", "")]
    assert (_size(path, "data:2"), _size(path, "data:3")) == ((40, 20), (60, 30))
    for part in ("data:1", "data:4", "data:0", "data:", "a.png", "../../etc/passwd"):
        assert _draw(path, part, tmp_path / "out") == Refused("not_found", f"a.html has no part {part}")


def test_a_page_of_many_parts_finds_its_last_picture(tmp_path: Path) -> None:
    filler = "<p>" + "word " * 5_000 + "</p>"
    path = _page(tmp_path, "".join(f"{filler}<img src='{_address(_picture((10 + n, 12)))}'>" for n in range(5)))
    assert [part for _, part in _parts(path)] == [f"data:{number}" for number in range(1, 6)]
    assert _size(path, "data:5") == (14, 12)


def test_drawings_of_lines_are_no_figures_but_their_words_are(tmp_path: Path) -> None:
    svg = "data:image/svg+xml," + "x" * 1000
    path = _page(tmp_path, f"<p>Text</p><img src='{svg}'><hr><img src='{svg}' alt='A plan'>")
    assert _parts(path) == [("A plan", "")]


@pytest.mark.parametrize(("before", "kept"), [("AAAA", 10_000), ("", 600)])
def test_damaged_pictures_are_refused(tmp_path: Path, before: str, kept: int) -> None:
    data = before + base64.b64encode(_picture()).decode()[:kept]
    path = _page(tmp_path, f"<p>Text</p><img src='data:image/png;base64,{data}'>")
    answer = _draw(path, "data:1", tmp_path / "out")
    assert isinstance(answer, Refused) and answer.code == "unreadable_file"


def test_contents_of_addresses() -> None:
    data = bytes(range(256))
    assert content("data:image/png," + quote_from_bytes(data)) == data
    folded = "\n ".join(base64.b64encode(data).decode()[at : at + 60] for at in range(0, 400, 60))
    assert content(f"data:image/png;BASE64,{folded}".rstrip("=")) == data
    with pytest.raises(ValueError, match="ends before its data"):
        content("data:image/png;base64")
    with pytest.raises(ValueError, match="base 64"):
        content("data:image/png;base64,A")


def test_a_name_that_no_picture_has_is_found_nowhere(tmp_path: Path) -> None:
    assert html.picture(_page(tmp_path, "<p>Text"), "data:1") == ""


# RTF


def _rtf(tmp_path: Path, body: bytes) -> Path:
    path = tmp_path / "a.rtf"
    path.write_bytes(b"{\\rtf1\\ansi " + body + b"}")
    return path


def _hexed(data: bytes, width: int = 128) -> bytes:
    digits = data.hex().encode()
    return b"\r\n".join(digits[at : at + width] for at in range(0, len(digits), width))


def test_pictures_of_an_rtf_file_follow_their_paragraph(tmp_path: Path) -> None:
    inline = b"{\\pict{\\*\\picprop{\\sp{\\sn wzDescription}{\\sv A  dog}}{\\sp{\\sn other}{\\sv no}}}"
    path = _rtf(
        tmp_path,
        b"Before "
        + b"{\\*\\shppict" + inline + b"\\picw40\\pich20\\pngblip{\\*\\blipuid 00ff}\r\n" + _hexed(_picture()) + b"}}"
        + b"{\\nonshppict{\\pict\\wmetafile8 " + _hexed(bytes(500)) + b"}}after.\\par "
        + b"{\\header{\\pict\\pngblip " + _hexed(_picture()) + b"}}{\\v{\\pict\\pngblip " + _hexed(_picture()) + b"}}"
        + b"Next {\\pict\\jpegblip\\bin%d " % len(jpeg := _picture((60, 30), "JPEG")) + jpeg + b"}\\par Last\\par",
    )  # fmt: skip
    blocks = list(rtf.read(path, rtf.profile(path, "a.rtf"), 0, 1))
    assert [(block.kind, block.text, block.picture) for block in blocks] == [
        (BlockKind.PARAGRAPH, "Before after.", None),
        (BlockKind.FIGURE, "A dog", Picture(part="pict:1")),
        (BlockKind.PARAGRAPH, "Next", None),
        (BlockKind.FIGURE, "", Picture(part="pict:2")),
        (BlockKind.PARAGRAPH, "Last", None),
    ]
    assert (_size(path, "pict:1"), _size(path, "pict:2")) == ((40, 20), (60, 30))
    assert _draw(path, "pict:3", tmp_path / "out") == Refused("not_found", "a.rtf has no part pict:3")


def test_a_shape_has_one_picture_and_its_words(tmp_path: Path) -> None:
    def held(name: bytes) -> bytes:
        return b"{\\sp{\\sn " + name + b"}{\\sv {\\pict\\pngblip " + _hexed(_picture()) + b"}}}"

    words = b"{\\sp{\\sn wzDescription}{\\sv A boat}}{\\sp{\\sn metroBlob}{\\sv " + b"00" * 500 + b"}}"
    shape = b"{\\shp{\\*\\shpinst\\shpleft1" + held(b"fillBlip") + held(b"pib") + words + b"}{\\shprslt old}}"
    path = _rtf(tmp_path, b"Text " + shape + b"goes on.\\par {\\shp{\\*\\shpinst" + words + b"}}Last\\par")
    blocks = list(rtf.read(path, rtf.profile(path, "a.rtf"), 0, 1))
    assert [(block.text, block.picture) for block in blocks] == [
        ("Text goes on.", None),
        ("A boat", Picture(part="pict:1")),
        ("Last", None),
    ]
    assert _size(path, "pict:1") == (40, 20)


def test_a_picture_in_a_cell_comes_after_its_table(tmp_path: Path) -> None:
    cell = b"{\\pict\\pngblip " + _hexed(_picture()) + b"}one\\cell two\\cell\\row "
    path = _rtf(tmp_path, b"\\trowd\\cellx1000\\cellx2000\\intbl " + cell + b"\\pard After\\par")
    blocks = list(rtf.read(path, rtf.profile(path, "a.rtf"), 0, 1))
    assert [block.kind for block in blocks] == [BlockKind.TABLE, BlockKind.FIGURE, BlockKind.PARAGRAPH]


def test_drawings_of_windows_have_only_their_words(tmp_path: Path) -> None:
    words = b"{\\*\\picprop{\\sp{\\sn wzDescription}{\\sv A chart}}}"
    drawing = b"\\emfblip " + _hexed(bytes(500)) + b"}"
    path = _rtf(tmp_path, b"a{\\pict" + drawing + b"b{\\pict" + words + drawing + b"\\par")
    assert _parts(path) == [("A chart", "")]


def test_a_cut_picture_is_refused_and_the_rest_is_read(tmp_path: Path) -> None:
    path = _rtf(tmp_path, b"a\\par{\\pict\\pngblip " + _hexed(_picture())[:900] + b"x}b\\par")
    assert _parts(path) == [("", "pict:1")]
    answer = _draw(path, "pict:1", tmp_path / "out")
    assert answer == Refused("unreadable_file", "pict:1 is no picture that can be shown")


def test_documents_without_names_of_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("words")
    assert _draw(path, "data:1", tmp_path / "out") == Refused("invalid_input", "a.txt has no pictures with names")


# Forms of PDF


def test_what_is_filled_into_a_form_is_drawn(tmp_path: Path) -> None:
    filled = b"0 0 1 rg 0 0 200 100 re f"
    path = pdfs.write_raw(
        tmp_path / "a.pdf",
        [b""],
        page=b"/Annots [4 0 R]",
        catalog=b"/AcroForm << /Fields [4 0 R] >>",
        more=b"4 0 obj\n<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ann) /F 4 /Rect [100 600 300 700]"
        b" /AP << /N 5 0 R >> >>\nendobj\n"
        b"5 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 200 100] /Length %d >>\nstream\n%b\nendstream\nendobj\n"
        % (len(filled), filled),
    )
    out = tmp_path / "out"
    (answer,) = answers(PictureRequest(1, str(path), "a.pdf", (Shot(str(out), dpi=72),)))
    assert isinstance(answer, Made)
    with Image.open(out) as shown:
        assert (shown.getpixel((200, 150)), shown.getpixel((50, 150))) == ((0, 0, 255), (255, 255, 255))
