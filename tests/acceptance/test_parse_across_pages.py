"""`pagemill parse` on a PDF whose paragraphs run over pages, and on one with chapters: with a real parser process."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from tests import pdfs
from tests.acceptance.conftest import Run
from tests.prose import paragraph, write_prose


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`pagemill parse` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(run, "parse")


def test_the_joined_block_is_shown_on_the_page_where_it_starts(run: Run, tmp_path: Path) -> None:
    written = [paragraph(number, 70) for number in range(8)]
    path = write_prose(tmp_path / "a.pdf", written)
    code, said, _ = run(path, "--json", "--blocks")
    blocks = json.loads(said)["blocks"]
    assert code == 0
    assert [block["text"] for block in blocks] == written
    over = [block for block in blocks if len({box[0] for box in block["boxes"]}) == 2]
    assert over and all(block["page"] == block["boxes"][0][0] for block in over)
    # Only what is wanted is read: the block then ends at the edge.
    page = over[0]["page"]
    (*_, last) = json.loads(run(path, "--json", "--blocks", "--pages", page)[1])["blocks"]
    assert over[0]["text"].startswith(last["text"]) and last["text"] != over[0]["text"]


def test_both_parts_of_a_block_are_drawn(run: Run, tmp_path: Path) -> None:
    path = write_prose(tmp_path / "a.pdf", [paragraph(1, 200)])
    code, said, _ = run(path, "--draw", tmp_path / "boxes")
    assert code == 0 and len(said.splitlines()) > 1
    for drawn in said.splitlines():
        with Image.open(drawn) as picture:
            colours = picture.convert("RGB").getcolors(1 << 20)
        assert (30, 90, 200) in {colour for _, colour in colours or ()}


def test_the_table_of_contents(run: Run, tmp_path: Path) -> None:
    path = pdfs.write_outlined(tmp_path / "a.pdf", ["Harvest", "Lighthouse"])
    code, said, _ = run(path, "--toc")
    assert code == 0
    assert said.splitlines()[2:] == ["1. Harvest  page 1 · chunk 1", "2. Lighthouse  page 3 · chunk 3"]
    facts = json.loads(run(path, "--toc", "--json")[1])
    assert facts["toc"] == [
        {"level": 1, "title": "1. Harvest", "page": 1, "chunk": 1},
        {"level": 1, "title": "2. Lighthouse", "page": 3, "chunk": 3},
    ]
    assert "toc" not in json.loads(run(path, "--json")[1])


def test_a_table_of_contents_of_a_file_without_pages(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Lamps\n\nThey are lit.\n\n## Oil\n\nIt burns.\n\n# Tides\n\nThey come.\n")
    assert run(path, "--toc")[1].splitlines()[2:] == ["Lamps  chunk 1", "    Oil  chunk 1", "Tides  chunk 1"]
    path.write_text("Nothing but words.\n")
    assert run(path, "--toc")[1].splitlines()[2:] == ["nothing in it is a heading"]


def test_a_table_of_contents_is_no_markdown(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Lamps\n")
    for form in ("--markdown", "--html"):
        code, _, error = run(path, "--toc", form)
        assert code == 2 and "--toc is a listing of its own" in error
