"""Old Word files, with a script in LibreOffice's place: conversion, its limits, and files that are none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docx as python_docx
import pytest

from common.errors import EncryptedFile, UnreadableFile, WrongKind
from rag.parser import legacy_office
from rag.parser.blocks import BlockKind, FileKind, Unit

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    yield
    legacy_office._held.drop()


def _ole(path: Path, *streams: str) -> Path:
    path.write_bytes(_OLE + b"".join(stream.encode("utf-16-le") + bytes(64) for stream in streams))
    return path


def _office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Puts `script` where LibreOffice is looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "soffice"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def _document(tmp_path: Path) -> Path:
    document = python_docx.Document()
    document.add_heading("Old", 1)
    document.add_paragraph("words")
    path = tmp_path / "new.docx"
    document.save(str(path))
    return path


def test_a_word_file_is_converted_once_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    script = (
        f'echo "$@" >> {calls}; for last; do :; done; test -f "$last" || exit 1; mkdir out;'
        f" cp {_document(tmp_path)} out/document.docx"
    )
    _office(tmp_path, monkeypatch, script)
    path = _ole(tmp_path / "a.doc", "WordDocument")
    profile = legacy_office.profile(path, "a.doc")
    assert (profile.kind, profile.unit, profile.units, profile.title) == (FileKind.LEGACY_OFFICE, Unit.WHOLE, 1, "Old")
    blocks = [(block.kind, block.text) for block in legacy_office.read(path, profile, 0, 1)]
    assert blocks == [(BlockKind.HEADING, "Old"), (BlockKind.PARAGRAPH, "words")]
    (call,) = calls.read_text().splitlines()
    assert "--headless" in call and "--convert-to docx" in call and "-env:UserInstallation=file://" in call

    kept = legacy_office.converted(path, profile)
    _ole(path, "WordDocument", "changed")
    os.utime(path, ns=(1, 1))
    assert len(list(legacy_office.read(path, profile, 0, 1))) == 2
    assert len(calls.read_text().splitlines()) == 2
    assert not kept.exists()


def test_without_libreoffice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreadableFile, match=r"a\.doc .*LibreOffice is needed to read old Word and PowerPoint files"):
        legacy_office.profile(_ole(tmp_path / "a.doc", "WordDocument"), "a.doc")


def test_a_conversion_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _office(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(UnreadableFile, match=r"a\.doc can't be opened by LibreOffice"):
        legacy_office.profile(_ole(tmp_path / "a.doc", "WordDocument"), "a.doc")


def test_a_conversion_that_hangs_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    _office(tmp_path, monkeypatch, f"sleep 600 & echo $! > {pid}; wait")
    monkeypatch.setattr(legacy_office, "CONVERT_TIMEOUT_S", 1)
    began = time.monotonic()
    with pytest.raises(UnreadableFile, match=r"a\.doc took LibreOffice longer than 1 s"):
        legacy_office.profile(_ole(tmp_path / "a.doc", "WordDocument"), "a.doc")
    assert time.monotonic() - began < 10
    child = Path("/proc") / pid.read_text().strip()
    while time.monotonic() - began < 10 and _is_running(child):
        time.sleep(0.02)
    assert not _is_running(child)


def test_a_conversion_dies_with_the_process_that_asked_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    _office(tmp_path, monkeypatch, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600")
    path = _ole(tmp_path / "a.doc", "WordDocument")
    code = (
        "import sys, pathlib; from rag.parser import legacy_office as o; o.profile(pathlib.Path(sys.argv[1]), 'a.doc')"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as asking:
        began = time.monotonic()
        while not pid.exists() and time.monotonic() - began < 20:
            time.sleep(0.02)
        child = Path("/proc") / pid.read_text().strip()
        asking.kill()
    while time.monotonic() - began < 30 and _is_running(child):
        time.sleep(0.02)
    assert not _is_running(child)


def test_it_is_started_once_more_where_it_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    script = (
        f"echo call >> {calls}; test $(wc -l < {calls}) -gt 1 || exit 81; mkdir out;"
        f" cp {_document(tmp_path)} out/document.docx"
    )
    _office(tmp_path, monkeypatch, script)
    assert legacy_office.profile(_ole(tmp_path / "a.doc", "WordDocument"), "a.doc").title == "Old"
    assert calls.read_text().count("call") == 2


def _is_running(process: Path) -> bool:
    try:
        return (process / "stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_which_format_a_file_becomes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert legacy_office._target(_ole(path, "WordDocument"), "a.doc") == "docx"
    assert legacy_office._target(_ole(path, "PowerPoint Document"), "a.doc") == "pptx"
    assert legacy_office._target(_ole(path, "PowerPoint Document", "WordDocument"), "a.PPT") == "pptx"
    assert legacy_office._target(_ole(path, "PowerPoint Document", "WordDocument"), "a.doc") == "docx"


def test_files_that_are_neither(tmp_path: Path) -> None:
    path = tmp_path / "a.doc"
    with pytest.raises(WrongKind, match="neither a Word nor a PowerPoint"):
        legacy_office.profile(_ole(path, "Workbook"), "a.doc")
    with pytest.raises(EncryptedFile, match=r"a\.doc is encrypted"):
        legacy_office.profile(_ole(path, "EncryptedPackage"), "a.doc")
    with pytest.raises(EncryptedFile, match=r"a\.ppt is encrypted"):
        legacy_office.profile(_ole(path, "PowerPoint Document", "EncryptedSummary"), "a.ppt")
    path.write_bytes(b"{\\rtf1 no}")
    with pytest.raises(WrongKind, match="is not an old Word or PowerPoint file"):
        legacy_office.profile(path, "a.doc")


def test_nothing_that_a_file_links_to_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        seen = tmp_path / "settings"
        connect = f"{sys.executable} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
        _office(tmp_path, monkeypatch, f"cp profile/user/registrymodifications.xcu {seen}; {connect}")
        with pytest.raises(UnreadableFile):
            legacy_office.profile(_ole(tmp_path / "a.doc", "WordDocument"), "a.doc")
        # Where the kernel keeps nobody from the network, the settings alone do.
        if _can_leave_network():
            with pytest.raises(TimeoutError):
                server.accept()
    settings = seen.read_text()
    for scheme in ("HTTP", "HTTPS", "FTP"):
        assert f'ooInet{scheme}ProxyName" oor:op="fuse"><value>127.0.0.1<' in settings
        assert f'ooInet{scheme}ProxyPort" oor:op="fuse"><value>1<' in settings


def _can_leave_network() -> bool:
    tried = "import sys; from common.process import leave_network; sys.exit(not leave_network())"
    return subprocess.run([sys.executable, "-c", tried], check=False).returncode == 0
