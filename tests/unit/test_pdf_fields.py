"""PDF: what is filled into the fields of forms, and notes put on a page."""

from __future__ import annotations

from pathlib import Path

from rag.parser import pdf_open, registry
from rag.parser.blocks import Block
from tests import pdfs

_FORM = b"BT /F1 12 Tf 72 720 Td (Name of the applicant:) Tj 0 -40 Td (Town:) Tj 0 -40 Td (Signed on paper.) Tj ET"


def _looks(number: int, text: bytes) -> bytes:
    shown = b"/Tx BMC q BT /F1 12 Tf 2 5 Td (%s) Tj ET Q EMC" % text
    return (
        b"%d 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 180 20] /Resources << /Font << /F1 3 0 R >> >>" % number
        + b" /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(shown), shown)
    )


def _field(number: int, kind: bytes, place: bytes, more: bytes) -> bytes:
    head = b"%d 0 obj\n<< /Type /Annot /Subtype /%s /Rect [%s] /F 4 " % (number, kind, place)
    return head + more + b" >>\nendobj\n"


def _write(path: Path, fields: bytes, numbers: bytes, *, form: bytes = b"") -> Path:
    catalog = b"/AcroForm << /Fields [10 0 R] /DR << /Font << /F1 3 0 R >> >> %s >>" % form
    return pdfs.write_raw(path, [_FORM], page=b"/Annots [%s]" % numbers, catalog=catalog, more=fields)


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _filled(path: Path) -> Path:
    name = _field(10, b"Widget", b"220 715 400 735", b"/FT /Tx /T (name) /V (Jane Doe) /AP << /N 20 0 R >>")
    town = _field(11, b"Widget", b"220 675 400 695", b"/FT /Tx /T (town) /V (Jane Doe) /AP << /N 21 0 R >>")
    note = _field(12, b"FreeText", b"72 500 300 520", b"/Contents (A note) /AP << /N 22 0 R >>")
    looks = _looks(20, b"Jane Doe") + _looks(21, b"Jane Doe") + _looks(22, b"A note in the margin")
    return _write(path, name + town + note + looks, b"10 0 R 11 0 R 12 0 R")


def test_what_is_filled_in_stands_behind_its_label(tmp_path: Path) -> None:
    assert [block.text for block in _read(_filled(tmp_path / "a.pdf"))] == [
        "Name of the applicant: Jane Doe",
        "Town: Jane Doe",
        "Signed on paper.",
        "A note in the margin",
    ]


def test_the_place_of_what_is_filled_in(tmp_path: Path) -> None:
    blocks = _read(_filled(tmp_path / "a.pdf"))
    (box,) = blocks[3].boxes
    assert 70 <= box.left <= 76 and 270 < box.top < box.bottom < 295
    name = blocks[0].boxes_of(blocks[0].text.index("Jane"), len(blocks[0].text))
    assert len(name) == 1 and 218 <= name[0].left <= 224


def test_a_page_with_fields_reads_the_same_again(tmp_path: Path) -> None:
    path = _filled(tmp_path / "a.pdf")
    pdf_open.release()
    opened = pdf_open.open_file(path, path.name)
    first = opened.page(0, ocr=False)
    assert opened.page(0, ocr=False) == first
    pdf_open.release()
    assert pdf_open.open_file(path, path.name).page(0, ocr=False) == first


def test_a_value_that_the_file_does_not_draw(tmp_path: Path) -> None:
    value = _field(10, b"Widget", b"220 715 400 735", b"/FT /Tx /T (name) /V (Jane Doe) /DA (/F1 12 Tf 0 g)")
    path = _write(tmp_path / "a.pdf", value, b"10 0 R", form=b"/NeedAppearances true /DA (/F1 12 Tf 0 g)")
    assert _read(path)[0].text == "Name of the applicant: Jane Doe"


def test_a_field_that_is_hidden_is_not_read(tmp_path: Path) -> None:
    hidden = _field(10, b"Widget", b"220 715 400 735", b"/FT /Tx /T (name) /V (Nobody) /AP << /N 20 0 R >>")
    path = _write(tmp_path / "a.pdf", hidden.replace(b"/F 4", b"/F 2") + _looks(20, b"Nobody"), b"10 0 R")
    assert [block.text for block in _read(path)] == ["Name of the applicant:", "Town:", "Signed on paper."]
