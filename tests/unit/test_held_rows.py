"""Rows of long files: ranges in any order, of several files in turns, are the same and read no more than they must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import UnreadableFile
from rag.parser import csv_rows, json_values, registry
from rag.parser.blocks import Block
from rag.parser.held_rows import MARK_EVERY, MAX_FILES, HeldRows, Start

_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "cp932", "gb18030", "koi8_r")
_WORDS = {"cp932": "日本語の行", "gb18030": "中文的行", "koi8_r": "русская строка"}


class Counted:
    """Numbers as rows, which remembers from where it was opened, how far it was read, and whether it was closed."""

    opened: list[Counted]

    def __init__(self, path: Path, encoding: str, start: Start) -> None:
        self.path, self.start, self.given, self.closed = path, start, 0, False
        Counted.opened.append(self)

    def __iter__(self) -> Iterator[int]:
        for number in range(self.start.place, 10 * MARK_EVERY):
            self.given += 1
            yield number

    def here(self) -> Start | None:
        return Start(self.start.place + self.given, 0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def held() -> HeldRows[int]:
    Counted.opened = []
    return HeldRows(Counted)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.rows" for number in range(MAX_FILES + 1)]
    for path in paths:
        path.touch()
    return paths


def _take(held: HeldRows[int], path: Path, first: int, count: int) -> list[int]:
    rows = held.rows(path, "utf-8", first)
    return [next(rows) for _ in range(count)]


def test_ranges_in_a_row_open_a_file_once(held: HeldRows[int], files: list[Path]) -> None:
    for first in range(0, 3 * MARK_EVERY, 500):
        assert _take(held, files[0], first, 500) == list(range(first, first + 500))
    assert len(Counted.opened) == 1


def test_a_row_that_was_passed_is_read_from_the_mark_before_it(held: HeldRows[int], files: list[Path]) -> None:
    _take(held, files[0], 5 * MARK_EVERY, 10)
    assert _take(held, files[0], 2 * MARK_EVERY + 7, 3) == [2 * MARK_EVERY + at for at in (7, 8, 9)]
    first, second = Counted.opened
    assert first.closed
    assert (second.start.place, second.given) == (2 * MARK_EVERY, 10)


def test_files_in_turns_go_on_where_they_were(held: HeldRows[int], files: list[Path]) -> None:
    for first in range(0, 8 * MARK_EVERY, MARK_EVERY):
        for path in files[:3]:
            assert _take(held, path, first, MARK_EVERY)[-1] == first + MARK_EVERY - 1
    assert sum(source.given for source in Counted.opened) == 3 * 8 * MARK_EVERY


def test_a_file_that_changed_is_read_anew(held: HeldRows[int], files: list[Path]) -> None:
    _take(held, files[0], 3 * MARK_EVERY, 1)
    files[0].write_text("changed")
    _take(held, files[0], 2 * MARK_EVERY, 1)
    assert Counted.opened[-1].start == Start()


def test_marks_of_no_more_than_the_last_files_are_kept(held: HeldRows[int], files: list[Path]) -> None:
    for path in files:
        _take(held, path, 2 * MARK_EVERY, 1)
    _take(held, files[-1], MARK_EVERY, 1)
    assert Counted.opened[-1].start.place == MARK_EVERY
    _take(held, files[0], MARK_EVERY, 1)
    assert Counted.opened[-1].start == Start()
    assert sum(not source.closed for source in Counted.opened) == 1


def _csv(encoding: str, rows: int) -> bytes:
    word = _WORDS.get(encoding, "plain row")
    lines = ["number,text"]
    for row in range(rows):
        lines += [f'{row},"{word}\r\n{row}"' if row % 3 else f"{row},{word}", ""]
    return "\r\n".join(lines).encode(encoding)


def _texts(path: Path, first: int, last: int) -> list[str]:
    profile = registry.profile(path, path.name)
    return [block.text for block in registry.read(path, profile, first, last)]


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_rows_are_the_same_from_a_mark_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    rows = 3 * MARK_EVERY + 50
    path = tmp_path / "a.csv"
    path.write_bytes(_csv(encoding, rows))
    profile = registry.profile(path, path.name)
    assert profile.units == rows
    straight = [block.text for block in registry.read(path, profile, 0, rows)]
    for first in (3 * MARK_EVERY, MARK_EVERY - 1, 2 * MARK_EVERY + 1, MARK_EVERY, 5):
        read = list(registry.read(path, profile, first, first + 20))
        assert [block.text for block in read] == straight[first : first + 20]
        assert [block.page for block in read] == list(range(first + 1, first + 21))
    assert all(text.startswith(f"number: {row};") for row, text in enumerate(straight))


def test_lines_of_json_are_the_same_from_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n": {row}, "t": "ä"}}\r\n\r\n' for row in range(2 * MARK_EVERY + 9)))
    assert _texts(path, 2 * MARK_EVERY, 2 * MARK_EVERY + 2) == [
        f"n: {2 * MARK_EVERY}\nt: ä",
        f"n: {2 * MARK_EVERY + 1}\nt: ä",
    ]
    assert _texts(path, MARK_EVERY, MARK_EVERY + 1) == [f"n: {MARK_EVERY}\nt: ä"]


def test_errors_name_the_line_after_a_mark_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bad = MARK_EVERY + 500
    path.write_text("".join("{}x\n" if row == bad else f'{{"n": {row}}}\n' for row in range(2 * MARK_EVERY)))
    profile = registry.profile(path, path.name)
    for _ in range(2):
        with pytest.raises(UnreadableFile, match=f"line {bad + 1} is not valid JSON"):
            list(registry.read(path, profile, bad, bad + 1))
        assert len(list(registry.read(path, profile, MARK_EVERY, MARK_EVERY + 1))) == 1


def test_a_row_without_an_end_after_a_mark_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_ROW_CHARS", 1000)
    path = tmp_path / "a.csv"
    path.write_text("n,t\n" + "".join(f"{row},x\n" for row in range(MARK_EVERY + 100)) + '1,"' + "y" * 2000)
    with pytest.raises(UnreadableFile, match=f"line {MARK_EVERY + 102} makes a row of more than 1,000 characters"):
        registry.profile(path, path.name)


def test_a_file_read_to_its_end_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n')
    profile = json_values.profile(path, path.name)
    blocks: list[Block] = list(json_values.read(path, profile, 0, 5))
    assert len(blocks) == 1
    assert not [link for link in Path("/proc/self/fd").iterdir() if link.exists() and link.resolve() == path]
