"""EPUB books: the chapters in the order of the spine. Their blocks are made by html_blocks; the whole book is one
unit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from common.errors import EmptyFile, EncryptedFile, UnreadableFile
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions, Unit
from rag.parser.html import decode_page
from rag.parser.html_blocks import blocks_of_text
from rag.parser.text import clean
from rag.parser.zip_parts import ZipParts, resolve

MAX_CHAPTER_BYTES = 64 << 20
_MAX_TITLE = 200
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Fonts are often scrambled this way; that locks no text.
_SCRAMBLED_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES = ("application/xhtml+xml", "text/html", "application/html+xml", "text/x-oeb1-document", "application/xml")
_PAGE_SUFFIXES = (".xhtml", ".html", ".htm", ".xht")
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EncryptedFile for a book with a lock on its text, EmptyFile for one without text."""
    with ZipParts(path, name) as parts:
        book = _Book(parts)
        if next(book.blocks(), None) is None:
            raise EmptyFile(f"{name} has no text in it")
        return Profile(
            kind=FileKind.EPUB,
            unit=Unit.WHOLE,
            units=1,
            title=book.said("title"),
            author=book.said("creator"),
            created=book.said("date"),
            modified=book.modified(),
        )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    with ZipParts(path, profile.title or "the book") as parts:
        yield from _Book(parts).blocks()


class _Book:
    """The package file of a book: what it says of itself, and the parts that are its chapters."""

    def __init__(self, parts: ZipParts) -> None:
        self._parts = parts
        self._where = _package_name(parts)
        self._package = parts.xml(self._where)
        self._chapters = list(dict.fromkeys(self._spine())) or self._pages()
        if not self._chapters:
            raise UnreadableFile(f"{parts.name} is damaged: it names no chapters")
        _refuse_locked(parts, self._chapters)

    def blocks(self) -> Iterator[Block]:
        for chapter in self._chapters:
            source = decode_page(self._parts.read(chapter, MAX_CHAPTER_BYTES))
            yield from blocks_of_text(source, _FindImage(self._parts, chapter))

    def said(self, what: str) -> str:
        """Titles, makers or dates: the first, or all of several makers."""
        found = [text for element in _named(self._package, what) if (text := _text(element))]
        return (", ".join(found) if what == "creator" else next(iter(found), ""))[:_MAX_TITLE]

    def modified(self) -> str:
        metas = (element for element in _named(self._package, "meta") if element.get("property") == "dcterms:modified")
        return next((text[:_MAX_TITLE] for element in metas if (text := _text(element))), "")

    def _spine(self) -> Iterator[str]:
        items = {element.get("id", ""): element for element in _named(self._package, "item")}
        for reference in _named(self._package, "itemref"):
            item = items.get(reference.get("idref", ""))
            part = resolve(self._where, item.get("href", "")) if item is not None and _is_page(item) else ""
            # A chapter that is not in the archive is left out: the others can still be read.
            if part and self._parts.has(part):
                yield part

    def _pages(self) -> list[str]:
        return [part for part in self._parts.names() if part.lower().endswith(_PAGE_SUFFIXES)]


class _FindImage:
    """From the address of an image in a chapter to its part of the archive; never further."""

    def __init__(self, parts: ZipParts, chapter: str) -> None:
        self._parts = parts
        self._chapter = chapter

    def __call__(self, address: str) -> str:
        if ":" in address or not address.lower().endswith(_IMAGE_SUFFIXES):
            return ""
        part = resolve(self._chapter, address)
        return part if part and self._parts.has(part) else ""


def _package_name(parts: ZipParts) -> str:
    if parts.has(_CONTAINER):
        for element in _named(parts.xml(_CONTAINER), "rootfile"):
            where = resolve("", element.get("full-path", ""))
            if where and parts.has(where):
                return where
    where = next((part for part in parts.names() if part.lower().endswith(".opf")), "")
    if not where:
        raise UnreadableFile(f"{parts.name} is not an EPUB book, or damaged: it has no package file")
    return where


def _refuse_locked(parts: ZipParts, chapters: list[str]) -> None:
    if not parts.has(_ENCRYPTION):
        return
    for element in _named(parts.xml(_ENCRYPTION), "EncryptedData"):
        ways = [each.get("Algorithm", "") for each in _named(element, "EncryptionMethod")]
        locked = [resolve("", each.get("URI", "")) for each in _named(element, "CipherReference")]
        if not any(way in _SCRAMBLED_FONTS for way in ways) and any(part in chapters for part in locked):
            raise EncryptedFile(f"{parts.name} is protected against copying (DRM), so its text can't be read")


def _named(root: etree._Element, name: str) -> Iterator[etree._Element]:
    """The elements of this name, in any name space."""
    yield from root.iter(f"{{*}}{name}")


def _is_page(item: etree._Element) -> bool:
    return item.get("media-type", "") in _PAGES or item.get("href", "").lower().endswith(_PAGE_SUFFIXES)


def _text(element: etree._Element) -> str:
    return clean(" ".join("".join(element.itertext()).split()))
