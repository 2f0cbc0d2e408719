"""Plain text, Markdown and CSV: encodings, blocks, and rows by range."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from common.errors import EmptyFile, UnreadableFile
from rag.parser import registry
from rag.parser.blocks import Block, BlockKind, Unit
from rag.parser.text import MAX_CHARS


def _file(tmp_path: Path, content: bytes | str) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read(path: Path, name: str, first: int = 0, end: int | None = None) -> list[Block]:
    profile = registry.profile(path, name)
    return list(registry.read(path, profile, first, profile.units if end is None else end))


def test_a_text_is_one_unit_of_paragraphs(tmp_path: Path) -> None:
    path = _file(tmp_path, "First line\nsecond line\n\n\n  \nAnother paragraph\r\nends here")
    profile = registry.profile(path, "a.txt")
    assert (profile.unit, profile.units, profile.encoding) == (Unit.WHOLE, 1, "utf-8")
    assert [block.text for block in _read(path, "a.txt")] == [
        "First line\nsecond line",
        "Another paragraph\nends here",
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "Der Bürgermeister von Köln grüßt die Gäste. Près de la forêt, l'élève a mangé une crêpe."
    assert [block.text for block in _read(_file(tmp_path, text.encode(encoding)), "a.txt")] == [text]


def test_cyrillic_in_its_old_encoding(tmp_path: Path) -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
    (block,) = _read(_file(tmp_path, text.encode("cp1251")), "a.txt")
    assert block.text == text


def test_the_odd_letter_may_come_late(tmp_path: Path) -> None:
    path = _file(tmp_path, b"plain words\n" * 20_000 + "déjà vu".encode("latin-1"))
    assert _read(path, "a.txt")[-1].text.endswith("déjà vu")


def test_one_bad_byte_does_not_spoil_utf8(tmp_path: Path) -> None:
    path = _file(tmp_path, "größer, schöner, weiter, über alle Flüsse".encode() + b" \xff end")
    assert _read(path, "a.txt")[0].text == "größer, schöner, weiter, über alle Flüsse \ufffd end"


def test_nuls_are_dropped(tmp_path: Path) -> None:
    (block,) = _read(_file(tmp_path, b"some words\x00 and some more of them\x07, all kept"), "a.txt")
    assert block.text == "some words and some more of them, all kept"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv"])
def test_white_space_is_empty(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmptyFile, match=f"{name} has no"):
        registry.profile(_file(tmp_path, b" \n\n \n"), name)


@pytest.mark.parametrize("unit", ["word ", "x"])
def test_one_line_of_many_megabytes(tmp_path: Path, unit: str) -> None:
    size = 8 << 20
    path = _file(tmp_path, unit * (size // len(unit)))
    profile = registry.profile(path, "a.txt")
    tracemalloc.start()
    seen = 0
    for block in registry.read(path, profile, 0, 1):
        assert len(block.text) <= MAX_CHARS
        seen += len(block.text.replace(" ", ""))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == size // len(unit) * len(unit.strip())
    assert peak < 2 << 20


def test_markdown_blocks(tmp_path: Path) -> None:
    source = """# Title #

Some words
on two lines.

Second
------
- one
  goes on
- two

1. three

| a | b |
|---|---|
| 1 | 2 |

```python
# not a heading

x = 1
```
### Last"""
    path = _file(tmp_path, source)
    assert registry.profile(path, "a.md").title == "Title"
    assert [(block.kind, block.level, block.text) for block in _read(path, "a.md")] == [
        (BlockKind.HEADING, 1, "Title"),
        (BlockKind.PARAGRAPH, 0, "Some words\non two lines."),
        (BlockKind.HEADING, 2, "Second"),
        (BlockKind.LIST_ITEM, 0, "- one\n  goes on"),
        (BlockKind.LIST_ITEM, 0, "- two"),
        (BlockKind.LIST_ITEM, 0, "1. three"),
        (BlockKind.TABLE, 0, "| a | b |\n|---|---|\n| 1 | 2 |"),
        (BlockKind.CODE, 0, "```python\n# not a heading\n\nx = 1\n```"),
        (BlockKind.HEADING, 3, "Last"),
    ]


def test_a_code_fence_that_never_ends(tmp_path: Path) -> None:
    blocks = _read(_file(tmp_path, "```\n" + "# line\n" * 10_000), "a.md")
    assert {block.kind for block in blocks} == {BlockKind.CODE}
    assert sum(block.text.count("# line") for block in blocks) == 10_000


def test_csv_rows(tmp_path: Path) -> None:
    path = _file(tmp_path, 'name,town,note\nAda,London,"first, ever"\n\nGrace,,"two\nlines"\n')
    profile = registry.profile(path, "a.csv")
    assert (profile.unit, profile.units, profile.columns) == (Unit.ROW, 2, ("name", "town", "note"))
    assert [(block.kind, block.page, block.text) for block in _read(path, "a.csv")] == [
        (BlockKind.TABLE, 1, "name: Ada; town: London; note: first, ever"),
        (BlockKind.TABLE, 2, "name: Grace; note: two lines"),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiters(tmp_path: Path, delimiter: str) -> None:
    rows = [["key", "value"], *([f"k{number}", f"some words {number}"] for number in range(20))]
    path = _file(tmp_path, "\n".join(delimiter.join(row) for row in rows))
    assert _read(path, "a.csv")[3].text == "key: k3; value: some words 3"


def test_csv_without_a_header(tmp_path: Path) -> None:
    blocks = _read(_file(tmp_path, "1,2,3\n4,5,6\n"), "a.csv")
    assert [block.text for block in blocks] == [
        "column 1: 1; column 2: 2; column 3: 3",
        "column 1: 4; column 2: 5; column 3: 6",
    ]


def test_csv_in_latin_1_with_more_cells_than_names(tmp_path: Path) -> None:
    path = _file(tmp_path, "ville,pays\nOrléans,France,été\nNîmes,France,hiver\n".encode("latin-1"))
    assert _read(path, "a.csv")[0].text == "ville: Orléans; pays: France; column 3: été"


def test_csv_ranges_in_any_order(tmp_path: Path) -> None:
    path = _file(tmp_path, "n,word\n" + "".join(f'{number},"row\n{number}"\n' for number in range(1, 301)))
    whole = _read(path, "a.csv")
    assert [block.page for block in whole] == list(range(1, 301))
    for first, end in ((0, 100), (100, 200), (250, 300), (50, 60), (200, 400)):
        assert _read(path, "a.csv", first, end) == whole[first:end]


def test_csv_with_an_open_quote_that_swallows_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, 'a,b\n1,"open\n' + "some,cells\n" * 500_000)
    for _ in range(2):
        with pytest.raises(UnreadableFile, match="is a quotation mark left open"):
            registry.profile(path, "a.csv")
