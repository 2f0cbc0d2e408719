"""Mutated files of every kind through a parser process: each gives chunks or an error that says what is wrong.

`make fuzz` runs it for as long as asked (ARGS="--seconds 600 --seed 7"); a file that makes a library raise something
nobody foresaw is kept, and its number with the seed makes it again."""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

import docx
import pptx
import trio
import xlsxwriter
from PIL import Image

from common.errors import AttemptFailed, DocumentError, PagemillError, ParserLost, ParserTimeout
from common.settings import Settings
from rag.flow.chunk import ChunkSettings
from rag.parser.blocks import ReadOptions
from rag.svr.parser_pool import Config, ParseJob, ParserPool
from tests import pdfs
from tests.zips import parts_of, zip_of

_TIMEOUT_S = 20.0
_UNITS = 6
# Without OCR, which would take nearly all the time.
_OPTIONS = ReadOptions(ocr=False)
_TOKENS = (b"<", b">", b"/", b"0", b"-1", b"99999999999", b"\x00", b"\xff\xfe", b"%s", b"&", b'"', b"stream", b"obj")


def _docx() -> bytes:
    document = docx.Document()
    document.add_heading("A heading", 1)
    document.add_paragraph("A paragraph of words.")
    document.add_paragraph("An item", style="List Bullet")
    table = document.add_table(2, 2)
    table.cell(0, 0).text = "name"
    return _saved(document.save)


def _pptx() -> bytes:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "A title"
    slide.placeholders[1].text = "A point"
    return _saved(deck.save)


def _xlsx() -> bytes:
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet = book.add_worksheet("Sheet")
        for row in range(5):
            sheet.write_row(row, 0, ["name", row, 1.5, True])
    return out.getvalue()


def _epub() -> bytes:
    container = b'<container><rootfiles><rootfile full-path="c.opf"/></rootfiles></container>'
    package = (
        b'<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"'
        b' media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    return zip_of(
        {
            "mimetype": b"application/epub+zip",
            "META-INF/container.xml": container,
            "c.opf": package,
            "a.xhtml": b"<html><body><h1>One</h1><p>Words.</p></body></html>",
        }
    )


def _odt() -> bytes:
    body = (
        b'<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        b' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>'
        b'<text:h text:outline-level="1">One</text:h><text:p>Words.</text:p>'
        b"</office:text></office:body></office:document-content>"
    )
    return zip_of({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": body})


def _mail() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@b.c", "d@e.f", "Hello"
    mail.set_content("Words.")
    mail.add_attachment(b"name,age\na,1\n", maintype="text", subtype="csv", filename="a.csv")
    return mail.as_bytes()


def _picture() -> bytes:
    return _saved(lambda out: Image.new("RGB", (40, 30), "white").save(out, "PNG"))


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()


def seeds(folder: Path) -> dict[str, bytes]:
    """A good file of each kind, by name."""
    return {
        "a.pdf": pdfs.write_pages(folder / "a.pdf", 2).read_bytes(),
        "outlined.pdf": pdfs.write_outlined(folder / "b.pdf", ["One", "Two"]).read_bytes(),
        "a.docx": _docx(),
        "a.xlsx": _xlsx(),
        "a.pptx": _pptx(),
        "a.epub": _epub(),
        "a.odt": _odt(),
        "a.eml": _mail(),
        "a.mbox": b"From a@b.c Mon\n" + _mail() + b"\n\nFrom a@b.c Tue\n" + _mail(),
        "a.rtf": rb"{\rtf1\ansi{\b A heading}\par Words with \'e9 and \u8364?.\par\trowd\cellx1 a\cell\row}",
        "a.html": b"<html><head><title>T</title></head><body><h1>A</h1><p>b<table><tr><td colspan=2>c</table><pre>d",
        "a.md": b"# A heading\n\nWords.\n\n- an item\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n",
        "a.csv": b"name,age\nAda,36\nAlan,41\n",
        "a.json": b'{"name": "Ada", "list": [1, 2.5, null, {"deep": true}], "text": "words"}',
        "a.jsonl": b'{"a": 1}\n{"a": [2, 3]}\n',
        "a.py": b'"""Doc."""\n\n\ndef f():\n    return 1\n',
        "a.txt": "Words, and caf\u00e9 too.\n\nMore words.\n".encode(),
        "a.png": _picture(),
    }


def mutated(content: bytes, dice: random.Random) -> bytes:
    """The file with something wrong in it; of a ZIP, half of the time something in one of its members."""
    if content.startswith(b"PK\x03\x04") and dice.random() < 0.5:
        members = parts_of(content)
        name = dice.choice(sorted(members))
        members[name] = _damaged(members[name], dice)
        return zip_of(members)
    return _damaged(content, dice)


def _damaged(content: bytes, dice: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        if not data:
            break
        at, length = dice.randrange(len(data)), dice.choice((1, 2, 8, 64, 512))
        match dice.randrange(6):
            case 0:
                data[at] ^= 1 << dice.randrange(8)
            case 1:
                data[at : at + length] = dice.randbytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length] * dice.choice((1, 3, 50))
            case 4:
                data[at:at] = dice.choice(_TOKENS)
            case _:
                del data[at:]
    return bytes(data)


@dataclass
class Findings:
    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    unforeseen: list[str] = field(default_factory=list)


async def fuzz(seconds: float, seed: int, keep: Path) -> Findings:
    """Files that bring up something unforeseen are kept in `keep`."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        good = sorted(seeds(folder).items())
        settings = Settings.model_validate({"parser": {"memory_mb": 2048, "timeout_s": _TIMEOUT_S}})
        async with ParserPool(Config.of(settings)) as parsers:
            until_s = time.monotonic() + seconds
            while time.monotonic() < until_s:
                number = findings.tried
                dice = random.Random(f"{seed}-{number}")
                name, content = good[number % len(good)]
                path = folder / f"{number}"
                path.write_bytes(mutated(content, dice))
                await _try(parsers, path, name, findings, keep)
                path.unlink()
    return findings


async def _try(parsers: ParserPool, path: Path, name: str, findings: Findings, keep: Path) -> None:
    findings.tried += 1
    try:
        profile = await parsers.prepare(path, name, _OPTIONS)
        job = ParseJob(profile, 0, min(profile.units, _UNITS), ChunkSettings(), _OPTIONS)
        await parsers.parse(path, job, lambda _: None)
        findings.outcomes["read"] += 1
    except ParserTimeout:
        findings.outcomes["too slow"] += 1
    except ParserLost:
        findings.outcomes["process lost"] += 1
    except DocumentError:
        findings.outcomes["refused"] += 1
    except (AttemptFailed, PagemillError) as exc:
        findings.outcomes["unforeseen"] += 1
        findings.unforeseen.append(f"{path.name} ({name}): {exc}")
        (keep / f"{path.name}-{name}").write_bytes(path.read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "pagemill-fuzz")
    options = parser.parse_args()
    options.keep.mkdir(exist_ok=True)
    print(f"seed {options.seed}")
    findings = trio.run(fuzz, options.seconds, options.seed, options.keep)
    print(f"{findings.tried} files: {dict(findings.outcomes)}")
    for line in findings.unforeseen:
        print(line)
    if findings.unforeseen:
        sys.exit(f"files that brought up something unforeseen are in {options.keep}")


if __name__ == "__main__":
    main()
