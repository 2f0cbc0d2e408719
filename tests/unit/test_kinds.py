"""What a file is said to be, by its bytes and not by its name."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from common.errors import EmptyFile, EncryptedFile, UnreadableFile, WrongKind
from rag.parser.blocks import FileKind
from rag.parser.kinds import detect
from tests import pdfs
from tests.zips import write_zip


def _ole(stream: str) -> bytes:
    """The header of an OLE file, and a directory with one stream in it."""
    header = bytearray(512)
    header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    header[30:32] = (9).to_bytes(2, "little")
    header[48:52] = (1).to_bytes(4, "little")
    return bytes(header) + bytes(512) + stream.encode("utf-16-le").ljust(512, b"\0")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("notes.txt", b"plain words", FileKind.TEXT),
        ("notes", b"plain words", FileKind.TEXT),
        ("notes.docx", b"plain words", FileKind.TEXT),
        ("README.md", b"# Title", FileKind.MARKDOWN),
        ("README.MARKDOWN", b"# Title", FileKind.MARKDOWN),
        ("table.csv", b"a,b\n1,2\n", FileKind.CSV),
        ("table.tsv", b"a\tb\n1\t2\n", FileKind.CSV),
        ("cafe.txt", "café crème brûlée".encode("latin-1"), FileKind.TEXT),
        ("wide.txt", "Grüße aus Köln".encode("utf-16"), FileKind.TEXT),
        ("wide.txt", "words without a mark at the start".encode("utf-16-le"), FileKind.TEXT),
        ("nul.txt", b"a text with a stray \x00 in it and more words after it", FileKind.TEXT),
        ("cut.txt", "é".encode() * 40_000, FileKind.TEXT),
        ("about.txt", b"Every such file starts with %PDF-1.4, they say.", FileKind.TEXT),
        ("BMW.txt", b"BMW and MZ are makers of motorcycles", FileKind.TEXT),
        ("paper.bin", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", FileKind.PDF),
        ("page", b"<!DOCTYPE html><html><body>words</body></html>", FileKind.HTML),
        ("page.htm", b"<p>words</p>", FileKind.HTML),
        ("data.json", b'{"a": 1}', FileKind.JSON),
        ("data.jsonl", b'{"a": 1}\n{"a": 2}\n', FileKind.JSON_LINES),
        ("run.py", b"print(1)\n", FileKind.CODE),
        ("letter", b"From: a@b.c\r\nTo: d@e.f\r\nSubject: Hello\r\nDate: today\r\n\r\nwords", FileKind.EMAIL),
        ("letters", b"From a@b.c today\nFrom: a@b.c\nTo: d@e.f\nSubject: Hello\n\nwords", FileKind.MBOX),
        ("prose.txt", b"From here on: nothing.\nTo be sure: nothing.\nA third line.\n", FileKind.TEXT),
        ("letter.rtf", b"{\\rtf1 words}", FileKind.RTF),
        ("named.txt", b"{\\rtf1 words}", FileKind.RTF),
        ("scan", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", FileKind.IMAGE),
        ("scan.tif", b"II*\0" + bytes(40), FileKind.IMAGE),
        ("scan.webp", b"RIFF\x10\0\0\0WEBPVP8 " + bytes(40), FileKind.IMAGE),
        ("photo.bmp", b"BM" + bytes(12) + b"\x28" + bytes(100), FileKind.IMAGE),
        ("old.doc", _ole("WordDocument"), FileKind.LEGACY_OFFICE),
        ("old.ppt", _ole("PowerPoint Document"), FileKind.LEGACY_OFFICE),
        ("old.xls", _ole("Workbook"), FileKind.SHEETS),
        ("junk.pdf", b"HTTP/1.1 200 OK\r\n" * 50 + b"%PDF-1.7\n", FileKind.PDF),
    ],
)
def test_kind(tmp_path: Path, name: str, content: bytes, kind: FileKind) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert detect(path, name) is kind


@pytest.mark.parametrize(
    ("content", "seems"),
    [
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "HTML"),
        (b"\n  <html lang='en'>", "HTML"),
        (b"Just a few words.", "text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a picture"),
        (gzip.compress(b"words" * 100), "a gzip archive"),
        (bytes(range(256)) * 20, "a binary file of an unknown kind"),
    ],
)
def test_not_a_pdf_behind_its_name(tmp_path: Path, content: bytes, seems: str) -> None:
    path = tmp_path / "blob"
    path.write_bytes(content)
    with pytest.raises(WrongKind) as caught:
        detect(path, "report.pdf")
    assert caught.value.public_message == f"report.pdf is not a PDF: its content looks like {seems}"


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"word/document.xml": "words"}, FileKind.DOCX),
        ({"[Content_Types].xml": "", "xl/workbook.xml": "words"}, FileKind.SHEETS),
        ({"ppt/presentation.xml": "words"}, FileKind.PPTX),
        ({"mimetype": "application/epub+zip"}, FileKind.EPUB),
        ({"mimetype": "application/vnd.oasis.opendocument.text"}, FileKind.ODT),
        ({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}, FileKind.SHEETS),
    ],
)
def test_what_is_in_a_container(tmp_path: Path, members: dict[str, str], kind: FileKind) -> None:
    assert detect(write_zip(tmp_path / "blob", members), "thing.txt") is kind


def test_an_archive_of_something_else_is_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "blob", {"a.txt": "words"})
    with pytest.raises(WrongKind, match="thing is a ZIP archive; PDF, Word, Excel"):
        detect(path, "thing")


def test_a_container_that_is_cut_off_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"PK\x03\x04" + bytes(300))
    with pytest.raises(UnreadableFile, match=r"a\.docx is a damaged ZIP file"):
        detect(path, "a.docx")
    path.write_bytes(_ole("WordDocument")[:300])
    with pytest.raises(UnreadableFile, match=r"a\.doc is cut off"):
        detect(path, "a.doc")


def test_an_encrypted_office_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(_ole("EncryptedPackage"))
    with pytest.raises(EncryptedFile, match=r"a\.docx is encrypted"):
        detect(path, "a.docx")


def test_unknown_binary_is_refused_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"\0" * 4096)
    with pytest.raises(WrongKind, match=r"zeros\.txt is a binary file of an unknown kind"):
        detect(path, "zeros.txt")


@pytest.mark.parametrize("name", ["empty.pdf", "empty.txt", "empty"])
def test_nothing_in_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "blob"
    path.touch()
    with pytest.raises(EmptyFile, match=f"{name} is empty"):
        detect(path, name)


def test_a_real_pdf(tmp_path: Path) -> None:
    assert detect(pdfs.write_pages(tmp_path / "a", 1), "a.txt") is FileKind.PDF


def test_an_opendocument_presentation_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.odp"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.presentation")
        archive.writestr("content.xml", "<a/>")
    with pytest.raises(
        WrongKind, match=r"a\.odp is an OpenDocument presentation \(to be read, save it as \.pptx\); PDF"
    ):
        detect(path, "a.odp")
