"""`pagemill parse` on real files, with its parser process, no server and no data folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from common.settings import ROOT
from tests import pdfs
from tests.acceptance.conftest import Run
from tests.acceptance.instance import PAGEMILL, PARSER
from tests.processes import alive, children, kill_all
from tests.waiting import PATIENCE_S, wait_for, wait_until


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`pagemill parse` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(run, "parse")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text("# The otter\n\nIt sleeps in the *boathouse*.\n\n- by day\n- by night\n")
    return path


def test_a_listing_has_the_profile_and_every_chunk(run: Run, notes: Path, tmp_path: Path) -> None:
    code, said, error = run(notes)
    assert (code, error) == (0, "")
    assert said.startswith("notes.md: markdown, “The otter”")
    assert "The otter > " not in said
    assert "    It sleeps in the *boathouse*.\n" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.md"]  # no data folder


def test_blocks_are_listed_with_their_kinds(run: Run, notes: Path) -> None:
    said = run(notes, "--blocks")[1]
    assert "heading 1\n    The otter\n" in said
    assert "paragraph\n    It sleeps in the *boathouse*.\n" in said


def test_json_is_one_object(run: Run, tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 4, sentences=6, title="Seven people", heading="Chapter")
    facts = json.loads(run(path, "--json", "--pages", "2-3", "--chunk-tokens", 60)[1])
    assert (facts["profile"]["kind"], facts["profile"]["units"]) == ("pdf", 4)
    assert {chunk["page"] for chunk in facts["chunks"]} == {2, 3}
    assert all(chunk["boxes"] and chunk["tokens"] <= 60 for chunk in facts["chunks"])
    assert facts["failed"] == []
    blocks = json.loads(run(path, "--json", "--blocks", "--pages", "4,1")[1])["blocks"]
    assert list(dict.fromkeys(block["page"] for block in blocks)) == [1, 4]
    assert blocks[0]["kind"] == "heading"
    assert blocks[0]["boxes"]


def test_markdown_and_html(run: Run, notes: Path) -> None:
    code, said, error = run(notes, "--markdown")
    assert (code, error) == (0, "")
    assert said.startswith("# The otter\n\nIt sleeps in the *boathouse*.\n\n- by day")
    said = run(notes, "--html")[1]
    assert said.startswith("<!DOCTYPE html>")
    assert "<h1>The otter</h1>" in said


def test_bad_usage_is_two_and_bad_input_is_one(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run()[0] == 2
    for args in (["--pages", "x"], ["--json", "--html"], ["--method", "nope"], ["--chunk-tokens", "0"]):
        code, said, _ = run(notes, *args)
        assert (code, said) == (2, ""), args
    (tmp_path / "empty.pdf").write_bytes(b"")
    (tmp_path / "wrong.pdf").write_text("not at all a PDF")
    os.mkfifo(tmp_path / "pipe.txt")
    for name, says in (
        ("none.txt", "none.txt can't be read: No such file or directory"),
        (".", "is not a file"),
        ("pipe.txt", "is not a file"),
        ("empty.pdf", "empty.pdf is empty"),
        ("wrong.pdf", "wrong.pdf is not a PDF: its content looks like text"),
    ):
        code, said, error = run(tmp_path / name)
        assert (code, said) == (1, ""), name
        assert error.startswith("pagemill: ") and error.count("\n") == 1
        assert says in error
    assert "has no pages to choose from" in run(notes, "--pages", "1")[2]
    assert "can't be read" in run(notes, "--password-file", tmp_path / "none")[2]


def test_pages_outside_are_an_error_of_the_file(run: Run, tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 2, sentences=3)
    code, said, error = run(path, "--pages", "7-9")
    assert (code, said) == (1, "")
    assert error == "pagemill: pages 7-9 are outside this document, which has 2 pages\n"


def test_the_good_pages_are_given_and_the_bad_ones_named(run: Run, tmp_path: Path) -> None:
    path = pdfs.write_without_page(tmp_path / "a.pdf", 4, missing=2)
    code, said, error = run(path, "--json")
    assert code == 3
    facts = json.loads(said)
    assert [chunk["page"] for chunk in facts["chunks"]] == [1, 3, 4]
    assert [(bad["first"], bad["last"]) for bad in facts["failed"]] == [(2, 2)]
    assert error.startswith("pagemill: page 2 can't be read: ")
    assert error.count("\n") == 1


def test_pages_are_drawn_with_what_was_found_on_them(run: Run, tmp_path: Path, notes: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 3, sentences=3, heading="Chapter")
    folder = tmp_path / "drawn" / "here"
    code, said, error = run(path, "--draw", folder, "--pages", "1,3")
    assert (code, error) == (0, "")
    assert said.splitlines() == [str(folder / "page-0001.png"), str(folder / "page-0003.png")]
    with Image.open(folder / "page-0003.png") as picture:
        assert picture.size in ((827, 1170), (827, 1169))
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24) or ()}
    assert {(200, 30, 30), (30, 90, 200), (150, 150, 150)} <= colours  # heading, paragraph, chunk
    code, said, error = run(path, "--draw", folder, "--pages", "2", "--markdown")
    assert said.startswith("<!-- page 2 -->")
    assert error == f"{folder / 'page-0002.png'}\n"
    code, _, error = run(notes, "--draw", folder)
    assert (code, error) == (1, "pagemill: --draw: notes.md has no pages to draw: only PDFs and pictures have\n")
    assert run(path, "--draw", notes)[0] == 1


def test_a_password_comes_from_a_file(run: Run, tmp_path: Path) -> None:
    path = pdfs.write_encrypted(tmp_path / "locked.pdf")
    secret = tmp_path / "secret"
    secret.write_text("sesame\nnot this line\n")
    assert run(path)[0] == 1
    code, said, _ = run(path, "--password-file", secret, "--markdown")
    assert (code, said) == (0, "<!-- page 1 -->\n\nNobody reads this without the password.\n")
    assert run(path, "--password-file", secret, "--draw", tmp_path / "drawn")[0] == 0
    secret.write_bytes(b"\xff\n")
    assert "is not valid UTF-8" in run(path, "--password-file", secret)[2]


def test_ctrl_c_ends_the_parser_process_too(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("number,what\n")
        file.writelines(f"{number},a line that is read for a while\n" for number in range(200_000))
    started = subprocess.Popen(
        [*PAGEMILL, "parse", str(path), "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        # Whoever runs the tests in the background may have it ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        (parser,) = wait_for(lambda: children(started.pid, PARSER), what="a parser process")
        parser.suspend()  # so that it does not end by itself
        try:
            started.send_signal(signal.SIGINT)
            error = started.communicate(timeout=PATIENCE_S)[1]
            wait_until(lambda: not alive([parser]), what="the parser process to be gone")
        finally:
            kill_all([parser])
    finally:
        started.kill()
        started.communicate()
    assert started.returncode != 0
    assert b"Traceback" not in error
