"""Pictures of pages, of places on them and of parts of zipped documents; what is no picture is refused by name."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fpdf import FPDF
from PIL import Image

from rag.parser import picture_process
from rag.parser.blocks import Box
from rag.parser.page_picture import MAX_PIXELS, answers
from rag.parser.picture_process import Made, PictureRequest, Refused, Shot
from tests import pdfs
from tests.zips import write_zip


def ask(path: Path, *shots: Shot, password: str = "") -> list[Made | Refused]:
    return list(answers(PictureRequest(0, str(path), path.name, shots, password)))


def refusal(path: Path, shot: Shot) -> tuple[str, str]:
    (answer,) = ask(path, shot)
    assert isinstance(answer, Refused), answer
    return answer.code, answer.message


def png(size: tuple[int, int] = (40, 20), colour: object = "red", mode: str = "RGB", form: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, colour).save(file, form)  # type: ignore[arg-type]
    return file.getvalue()


def zipped(path: Path, **parts: bytes) -> Path:
    named = {name.replace("_", "/", 1): data for name, data in parts.items()}
    return write_zip(path, {"word/document.xml": b"<x/>", **named})


def size_of(path: str) -> tuple[int, int]:
    with Image.open(path, formats=("PNG",)) as image:
        return image.size


def test_a_page_is_as_wide_as_asked_for(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 2, sentences=3)
    out = str(tmp_path / "out")
    (made,) = ask(path, Shot(out, page=2, width=300))
    assert isinstance(made, Made)
    assert size_of(out) in ((300, 425), (301, 425), (300, 424))
    assert made.scale == pytest.approx(300 / 595.28, rel=0.01)
    ask(path, Shot(out, page=1, dpi=72))
    assert size_of(out) in ((595, 842), (596, 842))
    ask(path, Shot(out, page=1, width=100_000))
    assert size_of(out)[0] <= 2001


def test_a_place_is_cut_out_of_its_page(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    pdf = FPDF()
    pdf.add_page()
    pdf.set_fill_color(255, 0, 0)
    pdf.rect(20, 30, 50, 10, style="F")  # millimetres: points are 2.83 times as many
    pdf.output(str(path))
    out = str(tmp_path / "out")
    (made,) = ask(path, Shot(out, page=1, box=Box(1, 58, 197, 86, 112), dpi=72))
    assert isinstance(made, Made)
    with Image.open(out) as image:
        assert image.size == (139, 26)
        assert {image.getpixel((x, y)) for x in (2, 70, 136) for y in (2, 13, 23)} == {(255, 0, 0)}
    code, message = refusal(path, Shot(out, page=1, box=Box(1, 700, 800, 10, 20)))
    assert (code, message) == ("invalid_input", "the place asked for is not on page 1")


def test_pages_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 2, sentences=3)
    out = str(tmp_path / "out")
    assert refusal(path, Shot(out, page=3)) == ("pages_outside", "page 3 is outside this document, which has 2 pages")
    assert refusal(path, Shot(out, page=0))[0] == "pages_outside"
    assert not Path(out).exists()


def test_an_endless_page_is_bounded(tmp_path: Path) -> None:
    pdf = FPDF(unit="pt", format=(72, 14400))
    pdf.add_page()
    path = tmp_path / "long.pdf"
    pdf.output(str(path))
    out = str(tmp_path / "out")
    ask(path, Shot(out, width=2000))
    width, height = size_of(out)
    assert width * height <= MAX_PIXELS * 1.01


def test_a_password_opens(tmp_path: Path) -> None:
    path = pdfs.write_encrypted(tmp_path / "locked.pdf")
    out = str(tmp_path / "out")
    assert refusal(path, Shot(out)) == ("encrypted_file", "locked.pdf is encrypted and needs a password")
    assert isinstance(ask(path, Shot(out, width=64), password="sesame")[0], Made)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.pdf", b"", "empty_file"),
        ("not.pdf", b"hello there", "wrong_kind"),
        ("cut.pdf", b"%PDF-1.4\n1 0 obj", "unreadable_file"),
        ("a.txt", b"only text", "invalid_input"),
        ("cut.png", png()[:40], "unreadable_file"),
    ],
)
def test_what_has_no_pages_is_refused(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert refusal(path, Shot(str(tmp_path / "out")))[0] == code


def test_frames_of_a_picture_are_its_pages(tmp_path: Path) -> None:
    path = tmp_path / "two.tiff"
    frames = [Image.new("L", (300, 150), grey) for grey in (0, 255)]
    frames[0].save(path, save_all=True, append_images=frames[1:], dpi=(150, 150))
    out = str(tmp_path / "out")
    (made,) = ask(path, Shot(out, page=2, width=100))
    assert isinstance(made, Made)
    assert made.scale == pytest.approx(100 / 144)  # 300 pixels at 150 dpi are 144 points
    with Image.open(out) as image:
        assert (image.size, image.getpixel((5, 5))) == ((100, 50), (255, 255, 255))
    assert refusal(path, Shot(out, page=3))[0] == "pages_outside"
    ask(path, Shot(out, page=1, box=Box(1, 0, 72, 0, 36)))
    assert size_of(out) == (150, 75)


def test_a_part_is_drawn_anew(tmp_path: Path) -> None:
    clear = png((80, 40), (255, 0, 0, 0), "RGBA")
    path = zipped(tmp_path / "a.docx", **{"word_i.png": clear, "word_j.jpg": png(form="JPEG") + b"<script>"})
    out = str(tmp_path / "out")
    assert isinstance(ask(path, Shot(out, part="word/i.png", width=40))[0], Made)
    with Image.open(out) as image:
        assert (image.size, image.getpixel((1, 1))) == ((40, 20), (255, 255, 255))
    assert isinstance(ask(path, Shot(out, part="word/j.jpg"))[0], Made)
    assert b"<script>" not in Path(out).read_bytes()
    assert size_of(out) == (40, 20)


def test_parts_that_are_no_pictures_are_refused(tmp_path: Path) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    path = zipped(tmp_path / "a.docx", **{"word_a.svg": svg, "word_b.png": b"no picture", "word_c.eps": b"%!PS-Adobe"})
    out = str(tmp_path / "out")
    for part in ("word/a.svg", "word/b.png", "word/c.eps", "word/document.xml"):
        assert refusal(path, Shot(out, part=part)) == ("unreadable_file", f"{part} is no picture that can be shown")
    assert refusal(path, Shot(out, part="word/none.png")) == ("not_found", "a.docx has no part word/none.png")
    assert refusal(path, Shot(out, part="../../etc/passwd"))[0] == "not_found"
    assert refusal(path, Shot(out))[0] == "invalid_input"
    pdf = pdfs.write_pages(tmp_path / "a.pdf", 1, sentences=3)
    assert refusal(pdf, Shot(out, part="word/i.png"))[0] == "invalid_input"


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_picture_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    bomb = png((12_000, 12_000), 0, "1")
    path = zipped(tmp_path / "a.docx", **{"word_bomb.png": bomb})
    code, message = refusal(path, Shot(str(tmp_path / "out"), part="word/bomb.png"))
    assert code == "unreadable_file"
    assert "word/bomb.png is too large a picture" in message


# In processes of their own


def test_one_shot_that_kills_the_process_does_not_stop_the_others(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 2, sentences=3)
    good = [Shot(str(tmp_path / f"{page}.png"), page=page, width=64) for page in (1, 2)]
    bad = Shot("/nowhere/at/all.png", page=1, width=64)  # an error that nobody expects ends the process
    first, killed, last = picture_process.draw(path, "a.pdf", [good[0], bad, good[1]])
    assert isinstance(first, Made) and isinstance(last, Made)
    assert killed == Refused("parser_lost", "a.pdf can't be drawn: the process that does it died")
    assert size_of(good[1].out)[0] == 64


def test_a_process_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_process, "_START_S", 0.01)
    monkeypatch.setattr(picture_process, "_SHOT_S", 0.01)
    path = pdfs.write_pages(tmp_path / "a.pdf", 1, sentences=3)
    (answer,) = picture_process.draw(path, "a.pdf", [Shot(str(tmp_path / "out"))])
    assert answer == Refused("parser_timeout", "a.pdf can't be drawn within 0.02 s")
