"""EPUB books, made on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import EmptyFile, EncryptedFile, UnreadableFile
from rag.parser import epub
from rag.parser.blocks import Block, BlockKind, FileKind, Picture, Unit
from tests.zips import write_zip

_CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
_PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The
 Book</dc:title><dc:creator>Ada</dc:creator><dc:creator>Grace</dc:creator><dc:date>2020-05-06</dc:date>
<meta property="dcterms:modified">2021-01-01T00:00:00Z</meta></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="a" href="text/first%20one.xhtml" media-type="application/xhtml+xml"/>
<item id="b" href="text/second.xhtml" media-type="application/xhtml+xml"/>
<item id="gone" href="text/gone.xhtml" media-type="application/xhtml+xml"/>
<item id="css" href="style.css" media-type="text/css"/></manifest>
<spine><itemref idref="b"/><itemref idref="nowhere"/><itemref idref="gone"/><itemref idref="css"/><itemref idref="a"/>
<itemref idref="nav" linear="no"/></spine></package>"""
_PAGE = """<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>
<body>{}</body></html>"""


def _parts(**changed: str | bytes | None) -> dict[str, str | bytes]:
    parts: dict[str, str | bytes | None] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": _CONTAINER,
        "OEBPS/book.opf": _PACKAGE,
        "OEBPS/nav.xhtml": _PAGE.format("<nav><ol><li>Contents</li></ol></nav>"),
        "OEBPS/text/first one.xhtml": _PAGE.format('<h1>Last</h1><p>Été<a id="x"/> ends.</p>'),
        "OEBPS/text/second.xhtml": _PAGE.format(
            '<h1>First</h1><script src="x"/><p>Words.</p><img src="../images/a.png" alt="Map"/>'
            '<img src="../../../etc/a.png"/><img src="http://example.org/a.png"/>'
        ),
        "OEBPS/images/a.png": b"png",
    }
    parts |= changed
    return {part: content for part, content in parts.items() if content is not None}


def _book(tmp_path: Path, **changed: str | bytes | None) -> Path:
    return write_zip(tmp_path / "blob", _parts(**changed))


def _read(path: Path) -> list[Block]:
    return list(epub.read(path, epub.profile(path, "a.epub"), 0, 1))


def test_chapters_in_the_order_of_the_spine(tmp_path: Path) -> None:
    assert [(block.kind, block.level, block.text, block.picture) for block in _read(_book(tmp_path))] == [
        (BlockKind.HEADING, 1, "First", None),
        (BlockKind.PARAGRAPH, 0, "Words.", None),
        (BlockKind.FIGURE, 0, "Map", Picture(part="OEBPS/images/a.png")),
        (BlockKind.HEADING, 1, "Last", None),
        (BlockKind.PARAGRAPH, 0, "Été ends.", None),
    ]


def test_the_profile(tmp_path: Path) -> None:
    profile = epub.profile(_book(tmp_path), "a.epub")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.EPUB, Unit.WHOLE, 1)
    assert (profile.title, profile.author) == ("The Book", "Ada, Grace")
    assert (profile.created, profile.modified) == ("2020-05-06", "2021-01-01T00:00:00Z")


def test_a_book_without_a_container_or_a_spine(tmp_path: Path) -> None:
    package = _PACKAGE[: _PACKAGE.index("<spine>")] + "</package>"
    path = _book(tmp_path, **{"META-INF/container.xml": None, "OEBPS/book.opf": package})
    assert [block.text for block in _read(path)] == ["Last", "Été ends.", "First", "Words.", "Map"]


def _locks(way: str, part: str) -> str:
    return f"""<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"
    xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:EncryptionMethod Algorithm="{way}"/>
    <enc:CipherData><enc:CipherReference URI="{part}"/></enc:CipherData></enc:EncryptedData></encryption>"""


def test_a_book_with_a_lock(tmp_path: Path) -> None:
    locks = _locks("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/text/first%20one.xhtml")
    with pytest.raises(EncryptedFile, match=r"a\.epub is protected against copying"):
        epub.profile(_book(tmp_path, **{"META-INF/encryption.xml": locks}), "a.epub")


def test_scrambled_fonts_are_no_lock(tmp_path: Path) -> None:
    locks = _locks("http://www.idpf.org/2008/embedding", "OEBPS/fonts/a.otf")
    assert len(_read(_book(tmp_path, **{"META-INF/encryption.xml": locks}))) == 5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"META-INF/container.xml": None, "OEBPS/book.opf": None}, "has no package file"),
        ({"OEBPS/book.opf": "<package"}, "not valid XML"),
        (
            {"OEBPS/book.opf": '<!DOCTYPE p [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><package>&b;</package>'},
            "declares entities",
        ),
        ({"OEBPS/text/second.xhtml": b"x" * (70 << 20)}, "too large once unpacked"),
    ],
)
def test_damaged_and_hostile_books(tmp_path: Path, changed: dict[str, str | bytes | None], message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        epub.profile(_book(tmp_path, **changed), "a.epub")


def test_a_truncated_book(tmp_path: Path) -> None:
    path = _book(tmp_path)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(UnreadableFile, match=r"a\.epub is damaged"):
        epub.profile(path, "a.epub")


def test_a_book_without_text(tmp_path: Path) -> None:
    empty = _PAGE.format(" ")
    path = _book(tmp_path, **{"OEBPS/text/first one.xhtml": empty, "OEBPS/text/second.xhtml": empty})
    with pytest.raises(EmptyFile, match=r"a\.epub has no text"):
        epub.profile(path, "a.epub")
