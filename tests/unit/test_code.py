"""Source code: cut between definitions, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import EmptyFile
from rag.parser import code
from rag.parser.blocks import BlockKind, FileKind, Unit
from rag.parser.code import LARGE_CHARS
from rag.parser.text import MAX_CHARS


def _texts(tmp_path: Path, source: str | bytes) -> list[str]:
    path = tmp_path / "blob"
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    profile = code.profile(path, "a.py")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.CODE, Unit.WHOLE, 1)
    blocks = list(code.read(path, profile, 0, 1))
    assert {block.kind for block in blocks} == {BlockKind.CODE}
    return [block.text for block in blocks]


def test_python(tmp_path: Path) -> None:
    head = '"""What it is.\n\n    Indented words.\n"""'
    imports = "import os\nimport sys"
    function = "@cache\ndef f(x):\n    if x:\n        return 1\n\n    return 2"
    constant = "FILE = 1\nend_of = 2"
    assert _texts(tmp_path, f"\n{head}\n\n{imports}\n\n\n{function}\n\n{constant}\n\n") == [
        head,
        imports,
        function,
        constant,
    ]


def test_what_closes_belongs_to_what_is_above(tmp_path: Path) -> None:
    first = "int f() {\n\treturn 1;\n\n}"
    second = "#ifdef X\nint a;\n\n#endif"
    assert _texts(tmp_path, f"{first}\n\n{second}\n") == [first, second]


def test_a_large_class_is_cut_between_its_methods(tmp_path: Path) -> None:
    methods = [
        f"    void m{number}() {{\n" + "        work();\n" * 60 + "\n        last();\n    }" for number in range(6)
    ]
    source = "class A {\n    int x;\n\n" + "\n\n".join(methods) + "\n}\n"
    texts = _texts(tmp_path, source)
    assert texts == ["class A {\n    int x;", *methods[:-1], methods[-1] + "\n}"]
    assert all(len(text) < LARGE_CHARS for text in texts)


def test_nothing_is_lost_of_a_file_without_blank_lines(tmp_path: Path) -> None:
    lines = [f"  call({number})  # \u00e9" for number in range(20_000)]
    texts = _texts(tmp_path, "\n".join(lines).encode("latin-1"))
    assert "\n".join(texts).split("\n") == lines
    assert max(map(len, texts)) <= MAX_CHARS


def test_one_line_of_megabytes(tmp_path: Path) -> None:
    texts = _texts(tmp_path, "x=1;" * 500_000)
    assert "".join(texts) == "x=1;" * 500_000
    assert max(map(len, texts)) <= MAX_CHARS


def test_white_space_is_empty(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match=r"a\.py has no text"):
        _texts(tmp_path, " \n\n")
