"""Zipped documents: bounds on what they unpack to, names that lead outside, hostile XML."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from common.errors import EncryptedFile, UnreadableFile
from rag.parser import zip_parts
from rag.parser.zip_parts import ZipParts, resolve
from tests.zips import write_zip

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def test_parts_are_read_by_name_in_any_case(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "a.zip", {"Word/Document.xml": b"<a><b/><!-- gone --></a>", "folder/": b"", "x.bin": b"\0\1"}
    )
    with ZipParts(path, "a.docx") as parts:
        assert parts.names() == ["Word/Document.xml", "x.bin"]
        assert parts.read("x.bin") == b"\0\1"
        assert parts.has("/word/document.xml")
        assert not parts.has("other")
        assert parts.size("x.bin") == 2
        root = parts.xml("word/document.xml")
        assert [child.tag for child in root] == ["b"]


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a": b""})
    with ZipParts(path, "a.docx") as parts, pytest.raises(UnreadableFile, match=r"its part word/b\.xml is missing"):
        parts.read("word/b.xml")


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "a/../../b", "..\\x", "/"])
def test_names_that_lead_outside_are_not_there(tmp_path: Path, name: str) -> None:
    with ZipParts(write_zip(tmp_path / "a.zip", {name: b"x", "good": b"y"}), "a") as parts:
        assert parts.names() == ["good"]
        assert not parts.has(name)


@pytest.mark.parametrize(
    ("base", "target", "part"),
    [
        ("word/document.xml", "media/image1.png", "word/media/image1.png"),
        ("word/document.xml", "/word/a.xml", "word/a.xml"),
        ("word/document.xml", "../docProps/core.xml", "docProps/core.xml"),
        ("word/document.xml", "../../secret", ""),
        ("content.xml", "./Pictures/a%20b.png#x", "Pictures/a b.png"),
        ("a/b.xml", "..\\..\\c", ""),
    ],
)
def test_references(base: str, target: str, part: str) -> None:
    assert resolve(base, target) == part


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip at all" * 10, b"PK\x05\x06" + b"\xff" * 18])
def test_damaged_archives(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile, match=r"a\.docx"):
        ZipParts(path, "a.docx")


def test_every_truncation_is_an_error_of_ours(tmp_path: Path) -> None:
    whole = write_zip(tmp_path / "a.zip", {"a.xml": b"<a>" + bytes(range(32, 60)) * 20 + b"</a>"}).read_bytes()
    path = tmp_path / "cut.zip"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(UnreadableFile):
            ZipParts(path, "cut.zip")


def test_damage_inside_a_part(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a.txt": bytes(range(256)) * 50})
    data = bytearray(path.read_bytes())
    data[60:90] = b"\xff" * 30
    path.write_bytes(data)
    with ZipParts(path, "a.zip") as parts, pytest.raises(UnreadableFile, match=r"a\.zip is damaged: its part a\.txt"):
        parts.read("a.txt")


def test_a_bomb_is_stopped_early(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "a.zip", {"bomb.xml": b" " * (64 << 20), "small.xml": b"<a>" + b" " * 100_000 + b"</a>"}
    )
    with ZipParts(path, "a.docx") as parts:
        with pytest.raises(UnreadableFile, match=r"a\.docx is too large once unpacked: its part bomb\.xml"):
            parts.xml("bomb.xml")
        assert parts.xml("small.xml").tag == "a"


def test_one_part_and_all_parts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_parts, "MAX_TOTAL_BYTES", 250)
    path = write_zip(tmp_path / "a.zip", {"a": bytes(100), "b": bytes(100), "c": bytes(100)})
    with ZipParts(path, "a.zip") as parts:
        with pytest.raises(UnreadableFile, match="too large"):
            parts.read("a", most=99)
        assert len(parts.read("a")) + len(parts.read("b")) == 200
        with pytest.raises(UnreadableFile, match="too large"):
            parts.read("c")


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zip(tmp_path / "a.zip", {f"{number}": b"" for number in range(11)})
    monkeypatch.setattr(zip_parts, "MAX_MEMBERS", 10)
    with pytest.raises(UnreadableFile, match="too many parts in it: 11"):
        ZipParts(path, "a.zip")
    monkeypatch.setattr(zip_parts, "_MAX_DIRECTORY_BYTES", 100)
    with pytest.raises(UnreadableFile, match="too many parts"):
        ZipParts(path, "a.zip")


def test_other_compressions_are_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a": b"x" * 1000}, zipfile.ZIP_LZMA)
    with ZipParts(path, "a.zip") as parts, pytest.raises(UnreadableFile, match="compressed in a way"):
        parts.read("a")


def test_encrypted_members(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a": b"x"}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with ZipParts(path, "a.zip") as parts, pytest.raises(EncryptedFile, match=r"a\.zip is encrypted"):
        parts.read("a")


def test_encrypted_office_files(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(_OLE + bytes((1 << 20) - 13) + "EncryptedPackage".encode("utf-16-le") + bytes(100))
    with pytest.raises(EncryptedFile, match=r"a\.docx is encrypted and needs a password"):
        ZipParts(path, "a.docx")
    path.write_bytes(_OLE + bytes(1000))
    with pytest.raises(UnreadableFile, match="old Office document"):
        ZipParts(path, "a.docx")


_LAUGHS = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<a>",
        b"plain",
        b'<!DOCTYPE a [<!ENTITY a0 "ha">' + _LAUGHS + b"]><a>&a9;</a>",
        b'<!DOCTYPE a [<!ENTITY a0 "ha">' + _LAUGHS + b']><a b="&a9;"/>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b"<a>" * 10_000 + b"</a>" * 10_000,
        b"<a>" + b"x" * (11 << 20) + b"</a>",
    ],
)
def test_bad_xml(tmp_path: Path, data: bytes) -> None:
    path = write_zip(tmp_path / "a.zip", {"a.xml": data}, zipfile.ZIP_STORED)
    with ZipParts(path, "a.odt") as parts, pytest.raises(UnreadableFile, match=r"is damaged: its part a\.xml"):
        parts.xml("a.xml")


def test_a_doctype_alone_fetches_nothing(tmp_path: Path) -> None:
    data = b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a/>'
    with ZipParts(write_zip(tmp_path / "a.zip", {"a.xml": data}), "a.odt") as parts:
        assert parts.xml("a.xml").tag == "a"


def test_the_file_is_closed(tmp_path: Path) -> None:
    parts = ZipParts(write_zip(tmp_path / "a.zip", {"a": b"x"}), "a.zip")
    parts.close()
    with pytest.raises(UnreadableFile):
        parts.read("a")
