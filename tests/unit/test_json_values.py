"""JSON and JSON Lines: paths and values as text, large files in little memory, and bad input by line and column."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from common.errors import EmptyFile, UnreadableFile
from rag.parser import json_stream, json_values, registry
from rag.parser.blocks import Block, BlockKind, FileKind, Unit
from rag.parser.text import MAX_CHARS


def _file(tmp_path: Path, content: bytes | str) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read(path: Path, name: str = "a.json", first: int = 0, end: int | None = None) -> list[Block]:
    profile = registry.profile(path, name)
    return list(registry.read(path, profile, first, profile.units if end is None else end))


def _texts(tmp_path: Path, content: bytes | str, name: str = "a.json") -> list[str]:
    return [block.text for block in _read(_file(tmp_path, content), name)]


def test_an_object(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        '{"name": "Ada", "address": {"city": "Utrecht", "rent": 1.10}, "tags": ["a", 2, true, null],'
        ' "orders": [{"sku": "x"}, {"sku": "y", "paid": false}], "none": null, "empty": {}, "blank": " "}',
    )
    profile = registry.profile(path, "a.json")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.JSON, Unit.WHOLE, 1)
    text = (
        "name: Ada\naddress.city: Utrecht\naddress.rent: 1.10\ntags: a, 2, true\n"
        "orders[0].sku: x\norders[1].sku: y\norders[1].paid: false"
    )
    assert _read(path) == [Block(BlockKind.PARAGRAPH, text, 1)]


def test_an_array_has_a_block_for_each_element(tmp_path: Path) -> None:
    content = '[{"a": 1, "b": {"c": false}}, {"a": 2}, 3, "four", [5, 6], [[7], [8]], {}, null]'
    assert _texts(tmp_path, content) == ["a: 1\nb.c: false", "a: 2", "3", "four", "5, 6", "[0]: 7\n[1]: 8"]


def test_a_long_object_has_a_block_for_each_member(tmp_path: Path) -> None:
    words = "words " * 300
    content = {"title": "Long", "year": 2024, "one": {"text": words}, "more": [{"text": words}, {"text": "end"}]}
    assert _texts(tmp_path, json.dumps(content)) == [
        "title: Long\nyear: 2024",
        f"one.text: {words}",
        f"more[0].text: {words}\nmore[1].text: end",
    ]


def test_members_of_the_same_name_are_all_kept(tmp_path: Path) -> None:
    assert _texts(tmp_path, '{"a": 1, "a": 2}') == ["a: 1\na: 2"]


@pytest.mark.parametrize("content", ['{"a": 1}\n{"a": 2}\n', '{"a": 1}{"a": 2}'])
def test_values_in_a_row(tmp_path: Path, content: str) -> None:
    assert _texts(tmp_path, content) == ["a: 1", "a: 2"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('"just words"', "just words"),
        ("-1.50e3", "-1.50e3"),
        ("1" * 6000, "1" * 6000),
        (r'"half \ud800 and nul\u0000 and \u00e9"', "half ? and nul and é"),
        ('"two\nlines\tand a tab"', "two\nlines\tand a tab"),
        ('\ufeff{"mark": "é"}', "mark: é"),
    ],
)
def test_values_as_text(tmp_path: Path, content: str, text: str) -> None:
    assert _texts(tmp_path, content) == [text]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    assert _texts(tmp_path, '{"città": "è bella"}'.encode(encoding)) == ["città: è bella"]


def test_long_strings_are_kept_whole(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(500_000))
    texts = _texts(tmp_path, json.dumps({"text": words}))
    assert "".join(texts) == f"text: {words}"
    assert max(len(text) for text in texts) <= MAX_CHARS


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"a": 1,\n  "b" 2}', "line 2, column 7: expecting ':' delimiter"),
        ("[1,\n 2,\n x]", "line 3, column 2: expecting value"),
        ("[1, 2", "line 1, column 6: ',' is expected"),
        ("[1 2]", "line 1, column 4: ',' is expected"),
        ("[1,]", "line 1, column 4: expecting value"),
        ('{"a": "open', "line 1, column 7: unterminated string"),
        ('{"a": 1}}', "line 1, column 9: expecting value"),
        ("{'a': 1}", "line 1, column 2: expecting property name enclosed in double quotes"),
        ("no JSON", "line 1, column 1: expecting value"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, place: str) -> None:
    with pytest.raises(UnreadableFile) as raised:
        _texts(tmp_path, content)
    assert str(raised.value).endswith(f" is not valid JSON: {place}")


def test_an_error_far_into_the_file(tmp_path: Path) -> None:
    lines = [f'{{"number": {number}, "text": "{"word " * 50}"}},' for number in range(20_000)]
    content = "[" + "\n".join([*lines, '{"number" 5}']) + "]"
    with pytest.raises(UnreadableFile, match="line 20001, column 11: expecting ':' delimiter"):
        _texts(tmp_path, content)


@pytest.mark.parametrize("content", [" \n ", "{}", "[[], null]"])
def test_nothing_to_read(tmp_path: Path, content: str) -> None:
    with pytest.raises(EmptyFile, match=r"a\.json has no text in it"):
        registry.profile(_file(tmp_path, content), "a.json")


@pytest.mark.parametrize("depth", [300, 900, 100_000])
@pytest.mark.parametrize(
    ("start", "end"), [("[", "]"), ('{"a":', "}"), ('{"text": "' + "word " * 410 + '", "a":', "}")]
)
def test_nesting_without_end(tmp_path: Path, depth: int, start: str, end: str) -> None:
    depth = min(depth, 5_000_000 // len(start))
    with pytest.raises(UnreadableFile, match="deep"):
        _texts(tmp_path, start * depth + "1" + end * depth)


def test_long_names_are_not_repeated_in_full(tmp_path: Path) -> None:
    texts = _texts(tmp_path, json.dumps({"k" * 100_000: {f"n{number}": number for number in range(2000)}}))
    assert sum(len(text) for text in texts) < 2000 * 320
    assert texts[-1].endswith("kkk.n1999: 1999")


@pytest.mark.parametrize("wrap", ["[{}]", '{{"meta": {{"v": 1}}, "data": {{"records": [{}]}}}}'])
def test_large_files_take_little_memory(tmp_path: Path, wrap: str) -> None:
    records = ",".join(json.dumps({"id": number, "text": "words " * 300}) for number in range(6000))
    path = _file(tmp_path, wrap.format(records))
    profile = registry.profile(path, "a.json")
    tracemalloc.start()
    last = ""
    count = 0
    for block in registry.read(path, profile, 0, 1):
        last, count = block.text, count + 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (count, "id: 5999\n" in last) in ((6000, True), (6001, True))
    assert peak < 8 << 20 < path.stat().st_size


def test_one_value_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_SCALAR_CHARS", 1 << 20)
    with pytest.raises(UnreadableFile, match="line 2, column 10: there is a value of more than 1,048,576 characters"):
        _texts(tmp_path, '{"a": 1,\n "text": "' + "word " * 1_000_000 + '"}')


def test_lines(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"a": {"b": 1}, "c": "x"}\n\n[1, 2]\r\n  "words"  \n{"only": null}')
    profile = registry.profile(path, "a.jsonl")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.JSON_LINES, Unit.ROW, 4)
    assert _read(path, "a.jsonl") == [
        Block(BlockKind.PARAGRAPH, "a.b: 1\nc: x", 1),
        Block(BlockKind.PARAGRAPH, "1, 2", 2),
        Block(BlockKind.PARAGRAPH, "words", 3),
    ]


def test_line_ranges_in_any_order(tmp_path: Path) -> None:
    path = _file(tmp_path, "".join(f'{{"n": {number}}}\n' for number in range(300)))
    whole = _read(path, "a.ndjson")
    assert [block.page for block in whole] == list(range(1, 301))
    for first, end in ((0, 100), (100, 200), (250, 300), (50, 60), (200, 400)):
        assert _read(path, "a.ndjson", first, end) == whole[first:end]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nope", "line 4 is not valid JSON: column 1: expecting value"),
        ('{"a": 1} {"b": 2}', "line 4 is not valid JSON: column 9: more than one value"),
        ('{"a": "open', "line 4 is not valid JSON: column 7: unterminated string"),
        ("[" * 100_000, "line 4 is nested too deeply"),
    ],
)
def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path, line: str, problem: str) -> None:
    path = _file(tmp_path, f'{{"a": 1}}\n\n{{"a": 2}}\n{line}\n{{"a": 4}}\n')
    with pytest.raises(UnreadableFile) as raised:
        _read(path, "a.jsonl")
    assert str(raised.value) == problem
    assert [block.text for block in _read(path, "a.jsonl", 0, 2) + _read(path, "a.jsonl", 3, 4)] == [
        "a: 1",
        "a: 2",
        "a: 4",
    ]


def test_lines_that_begin_badly_or_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="line 2 is not valid JSON"):
        registry.profile(_file(tmp_path, "\nnope\n{}\n"), "a.jsonl")
    with pytest.raises(EmptyFile, match=r"a\.jsonl has no lines in it"):
        registry.profile(_file(tmp_path, "\n \n"), "a.jsonl")


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "MAX_LINE_CHARS", 1 << 20)
    with pytest.raises(UnreadableFile, match="line 2 has more than 1,048,576 characters"):
        _texts(tmp_path, '{"a": 1}\n"' + "x" * (2 << 20) + '"', "a.jsonl")
