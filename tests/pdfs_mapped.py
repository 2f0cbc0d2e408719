"""PDF pages whose letters stand for those of another script, and pages with rules: what fonts at hand cannot write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests import pdfs
from tests.pdfs_placed import Placed

_HEIGHT = 792


def drawn(texts: Iterable[Placed], rules: Iterable[tuple[float, float, float]] = ()) -> bytes:
    """The commands for texts in Helvetica, and for rules from left to right, so far down."""
    commands = [
        f"BT /F1 {each.size:g} Tf {each.x:g} {_HEIGHT - each.y:g} Td ({_escaped(each.text)}) Tj ET" for each in texts
    ]
    commands += [f"{left:g} {_HEIGHT - y:g} {right - left:g} 0.5 re f" for left, right, y in rules]
    return "\n".join(commands).encode("latin-1")


def write_ruled(path: Path, texts: Iterable[Placed], rules: Iterable[tuple[float, float, float]] = ()) -> Path:
    return pdfs.write_raw(path, [drawn(texts, rules)])


def write_mapped(path: Path, texts: Iterable[Placed], letters: Mapping[str, str]) -> Path:
    """One page on which `letters` are read as what they stand for."""
    pairs = " ".join(f"<{ord(letter):02x}> <{ord(meant):04x}>" for letter, meant in letters.items())
    to_unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <00> <ff>"
        f" endcodespacerange {len(letters)} beginbfchar {pairs} endbfchar endcmap end end"
    )
    objects = [
        pdfs.CATALOG,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        _stream(drawn(texts)),
        pdfs.HELVETICA.replace(b">>", b"/ToUnicode 6 0 R >>"),
        _stream(to_unicode.encode()),
    ]
    path.write_bytes(pdfs.pdf_of(objects))
    return path


def _stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
