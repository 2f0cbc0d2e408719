"""What a file is said to be, by its bytes and not by its name."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from common.errors import EmptyFile, WrongKind
from rag.parser.blocks import FileKind
from rag.parser.kinds import detect
from tests import pdfs


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
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
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


@pytest.mark.parametrize(("inside", "seems"), [("a.txt", "a ZIP archive"), ("word/document.xml", "a Word document")])
def test_an_archive_is_named(tmp_path: Path, inside: str, seems: str) -> None:
    path = tmp_path / "blob"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(inside, "words")
    with pytest.raises(WrongKind, match=f"thing is {seems}; PDF, plain text, Markdown and CSV"):
        detect(path, "thing")


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
