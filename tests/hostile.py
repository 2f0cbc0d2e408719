"""Files that are broken or meant to do harm, made on the spot. None of them is larger than a few megabytes."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from tests import pdfs
from tests.pdfs import one_page, pdf_of
from tests.zips import zip_of

_GIGABYTE = 1 << 30
_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    + "]>"
)
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _good_pdf(folder: Path) -> bytes:
    return pdfs.write_pages(folder / "good.pdf", 3).read_bytes()


def truncated_pdf(folder: Path) -> bytes:
    return _good_pdf(folder)[:-700]


def half_pdf(folder: Path) -> bytes:
    whole = _good_pdf(folder)
    return whole[: len(whole) // 2]


def wrong_xref(folder: Path) -> bytes:
    head, _, tail = _good_pdf(folder).rpartition(b"startxref")
    return head + b"startxref\n99999999\n%%EOF\n" + tail[:0]


def cyclic_pages(folder: Path) -> bytes:
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 5 >>",
            b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R] /Count 5 >>",
        ]
    )


def cyclic_outline(folder: Path) -> bytes:
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
            b"<< /Type /Outlines /First 5 0 R /Last 5 0 R >>",
            b"<< /Title (round) /Parent 4 0 R /Next 5 0 R /First 5 0 R /Dest [3 0 R /Fit] >>",
        ]
    )


def many_empty_pages(folder: Path) -> bytes:
    kids = b" ".join(b"3 0 R" for _ in range(100_000))
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%b] /Count 100000 >>" % kids,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
        ]
    )


def wide_page(folder: Path) -> bytes:
    return one_page(b"BT /F1 12 Tf 100 700 Td (A page of two hundred metres.) Tj ET", box=b"0 0 566929 792")


def absurd_matrix(folder: Path) -> bytes:
    content = b"BT /F1 1e30 Tf 1e38 1e38 1e38 1e38 1e38 1e38 Tm (far away) Tj ET BT /F1 0 Tf (no size) Tj ET"
    return one_page(content)


def pdf_bomb(folder: Path) -> bytes:
    """A stream of 1 GB, packed twice into a few kilobytes."""
    packer = zlib.compressobj(9)
    once = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()
    twice = zlib.compress(once, 9)
    return one_page(twice, stream=b"/Filter [/FlateDecode /FlateDecode]")


def many_words(folder: Path) -> bytes:
    return one_page(b"BT /F1 1 Tf " + b"1 0 0 1 5 5 Tm (a) Tj " * 200_000 + b"ET")


def html_called_pdf(folder: Path) -> bytes:
    return b"<!DOCTYPE html><html><body>404 Not Found</body></html>"


def _big_member(name: str, others: dict[str, bytes]) -> bytes:
    """A ZIP whose member `name` unpacks to a gigabyte."""
    out = io.BytesIO(zip_of(others))
    block = b" " * (1 << 24)
    with (
        zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(_GIGABYTE // len(block)):
            member.write(block)
    return out.getvalue()


_TYPES = {
    "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "_rels/.rels": b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>',
}


def docx_bomb(folder: Path) -> bytes:
    return _big_member("word/document.xml", _TYPES)


def xlsx_bomb(folder: Path) -> bytes:
    return _big_member("xl/worksheets/sheet1.xml", {**_TYPES, "xl/workbook.xml": b"<workbook/>"})


def pptx_bomb(folder: Path) -> bytes:
    return _big_member("ppt/slides/slide1.xml", {**_TYPES, "ppt/presentation.xml": b"<presentation/>"})


def entity_bomb(folder: Path) -> bytes:
    body = f'<w:document xmlns:w="{_WORD}"><w:body><w:p><w:r><w:t>&a11;</w:t></w:r></w:p></w:body></w:document>'
    return zip_of({**_TYPES, "word/document.xml": (_LAUGHS + body).encode()})


def zip_slip(folder: Path) -> bytes:
    return zip_of({**_TYPES, "../../../../tmp/pagemill-slipped": b"out", "word/document.xml": b"<w:document/>"})


def epub_bomb(folder: Path) -> bytes:
    return _big_member("OEBPS/one.xhtml", {"mimetype": b"application/epub+zip"})


def one_long_line(folder: Path) -> bytes:
    return b"word " * (2 << 20)


def nothing_but_nuls(folder: Path) -> bytes:
    return bytes(1 << 16)


def text_with_nuls(folder: Path) -> bytes:
    return b"A line with a \x00 in it and more words behind it.\n" * 50


def lone_surrogates(folder: Path) -> bytes:
    return b"Half a pair: \xed\xa0\x80, and the other: \xed\xbf\xbf, in one line.\n" * 20


def deep_html(folder: Path) -> bytes:
    return b"<html><body>" + b"<div>" * 100_000 + b"the bottom" + b"</div>" * 100_000


def deep_json(folder: Path) -> bytes:
    return b"[" * 100_000 + b"1" + b"]" * 100_000


def endless_quote_csv(folder: Path) -> bytes:
    return b'name,text\na,"' + b"no end in sight " * 600_000


def picture_bomb(folder: Path) -> bytes:
    """A PNG that says it is 60,000 x 60,000."""
    header = (60_000).to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00"
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    out = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        out += len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
    return out


def nested_mail(folder: Path) -> bytes:
    """A letter in a letter in a letter, fifty deep."""
    inner = b"Subject: the last\r\n\r\nwords"
    for number in range(50):
        boundary = b"b%d" % number
        inner = (
            b"From: a@b.c\r\nSubject: %d\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n"
            b"--%b\r\nContent-Type: message/rfc822\r\n\r\n%b\r\n--%b--\r\n"
        ) % (number, boundary, boundary, inner, boundary)
    return inner


def rtf_of_braces(folder: Path) -> bytes:
    return b"{\\rtf1 " + b"{" * 200_000 + b"deep" + b"}" * 10


# File names with what makes them. The name is what the owner calls the file.
FILES: dict[str, Callable[[Path], bytes]] = {
    "truncated.pdf": truncated_pdf,
    "half.pdf": half_pdf,
    "wrong-xref.pdf": wrong_xref,
    "cyclic-pages.pdf": cyclic_pages,
    "cyclic-outline.pdf": cyclic_outline,
    "many-empty-pages.pdf": many_empty_pages,
    "wide-page.pdf": wide_page,
    "absurd-matrix.pdf": absurd_matrix,
    "bomb.pdf": pdf_bomb,
    "many-words.pdf": many_words,
    "html.pdf": html_called_pdf,
    "bomb.docx": docx_bomb,
    "bomb.xlsx": xlsx_bomb,
    "bomb.pptx": pptx_bomb,
    "bomb.epub": epub_bomb,
    "entities.docx": entity_bomb,
    "slip.docx": zip_slip,
    "one-line.txt": one_long_line,
    "nuls.txt": nothing_but_nuls,
    "some-nuls.txt": text_with_nuls,
    "surrogates.txt": lone_surrogates,
    "deep.html": deep_html,
    "deep.json": deep_json,
    "endless-quote.csv": endless_quote_csv,
    "bomb.png": picture_bomb,
    "nested.eml": nested_mail,
    "braces.rtf": rtf_of_braces,
}
