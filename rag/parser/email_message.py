"""One message of e-mail as blocks: its headers, its text, and its attachments read like files of their own.

Whatever is broken in a message, what can be read of it is. Splitting mailboxes into messages is left to others."""

from __future__ import annotations

import mimetypes
import re
import tempfile
from collections.abc import Iterable, Iterator
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from common.errors import DocumentError
from rag.parser import charsets, kinds
from rag.parser.blocks import Block, BlockKind, FileKind, ReadOptions
from rag.parser.html import decode_page
from rag.parser.html_blocks import blocks_of_text
from rag.parser.html_tags import pieces
from rag.parser.text import clean, paragraphs

Mail: TypeAlias = "Message[str, str]"

MAX_DEPTH = 3
MAX_PARTS = 1000
MAX_ATTACHMENTS = 100
MAX_ATTACHMENT_BYTES = 64 << 20
MAX_ATTACHED_BYTES = 256 << 20
# Smaller images that a text shows are logos and smileys.
MIN_INLINE_IMAGE_BYTES = 20_000
_MAX_HEADER = 2000
_MAX_NAME = 200
_SHOWN = ("From", "To", "Cc", "Date")
_NO_DOCUMENTS = ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
_ENCRYPTED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted")
_STATUS = "message/delivery-status"
_MAX_STATUS = 100
_SPACE = re.compile(r"\s+")


class Budget:
    """How many attachments, and bytes of them, may still be read of a message and all that is in it."""

    def __init__(self) -> None:
        self._files = MAX_ATTACHMENTS
        self._bytes = MAX_ATTACHED_BYTES

    def refusal(self, size: int) -> str:
        """Why an attachment of this size is not read; "" if it is."""
        if size > MAX_ATTACHMENT_BYTES or size > self._bytes:
            return "it is too large"
        if self._files == 0:
            return "the message has too many attachments"
        self._files -= 1
        self._bytes -= size
        return ""


def parse(data: bytes) -> Mail:
    """The message; one whose parts are nested without end is its headers and the rest as text."""
    try:
        return message_from_bytes(data, policy=policy.compat32)
    except RecursionError:
        mail = BytesHeaderParser(policy=policy.compat32).parsebytes(data)
        del mail["Content-Type"]
        return mail


def header(mail: Mail, name: str) -> str:
    """A header as people read it; "" if there is none."""
    wanted = name.lower()
    raw = next((str(value) for key, value in mail.raw_items() if key.lower() == wanted), "")
    return _SPACE.sub(" ", clean(_decoded(raw[: 4 * _MAX_HEADER]))).strip()[:_MAX_HEADER]


def sent(mail: Mail) -> str:
    """The date of the message in the ISO form; "" if it has none that can be read."""
    try:
        return parsedate_to_datetime(header(mail, "Date")).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def blocks_of_mail(mail: Mail, options: ReadOptions, depth: int = 0, budget: Budget | None = None) -> Iterator[Block]:
    """Subject, headers, text, then the attachments under their names. All blocks are on page 1."""
    subject = header(mail, "Subject")
    if subject:
        yield Block(kind=BlockKind.HEADING, text=subject, page=1, level=1)
    yield from _paragraph([f"{name}: {value}" for name in _SHOWN if (value := header(mail, name))])
    body, attached = _sorted_parts(mail)
    for part in body:
        yield from _text_blocks(part)
    budget = budget or Budget()
    for number, part in enumerate(attached, 1):
        yield from _attachment_blocks(part, number, options, depth, budget)


def _sorted_parts(mail: Mail) -> tuple[list[Mail], list[Mail]]:
    """The parts that are the message's text, and those attached to it."""
    body: list[Mail] = []
    attached: list[Mail] = []
    waiting = [mail]
    for _ in range(MAX_PARTS):
        if not waiting:
            break
        part = waiting.pop()
        kind = part.get_content_type()
        children = _children(part)
        if kind in _ENCRYPTED or kind == _STATUS:
            body.append(part)
        elif kind == "multipart/alternative" and children:
            waiting += _best(children)
        elif kind != "message/rfc822" and children:
            waiting += reversed(children)
        elif _is_body(part, kind):
            body.append(part)
        elif kind not in _NO_DOCUMENTS and not _is_decoration(part, kind):
            attached.append(part)
    return body, attached


def _best(children: list[Mail]) -> list[Mail]:
    """Of several forms of one text, the plain one if it says anything, else HTML, else the last."""
    plain = [child for child in children if child.get_content_type() == "text/plain" and _content(child).strip()]
    html = [child for child in children if child.get_content_type() in ("text/html", "multipart/related")]
    others = [child for child in children if child.get_content_maintype() not in ("text", "multipart")]
    return [*reversed(others), *(plain or html or children[-1:])[:1]]


def _is_body(part: Mail, kind: str) -> bool:
    if part.get_content_disposition() == "attachment" or _file_name(part):
        return False
    return kind.startswith(("text/", "multipart/"))


def _is_decoration(part: Mail, kind: str) -> bool:
    shown = part.get_content_disposition() != "attachment" and part.get("Content-ID") is not None
    return kind.startswith("image/") and shown and len(_content(part)) < MIN_INLINE_IMAGE_BYTES


def _text_blocks(part: Mail) -> Iterator[Block]:
    kind = part.get_content_type()
    if kind in _ENCRYPTED:
        yield _note("The text of this message is encrypted or sealed, and can't be read.")
    elif kind == _STATUS:
        for child in _children(part):
            yield from _paragraph([f"{name}: {header(child, name)}" for name in child.keys()[:_MAX_STATUS]])
    elif kind == "text/html":
        yield from blocks_of_text(decode_page(_content(part), _charset(part)))
    else:
        text = clean(charsets.decode(_content(part), _charset(part)))
        lines = (piece for line in text.splitlines() for piece in pieces(line))
        yield from (Block(kind=BlockKind.PARAGRAPH, text=each, page=1) for each in paragraphs(lines))


def _attachment_blocks(part: Mail, number: int, options: ReadOptions, depth: int, budget: Budget) -> Iterator[Block]:
    inner = _inner_mail(part)
    data = b"" if inner is not None else _content(part)
    name = _file_name(part) or (header(inner, "Subject") if inner is not None else "") or _made_up_name(part, number)
    yield Block(kind=BlockKind.HEADING, text=name, page=1, level=2)
    if refusal := budget.refusal(len(data)):
        yield _note(f"The attachment {name} was not read: {refusal}.")
        return
    try:
        if inner is None:
            yield from _nested(_file_blocks(data, name, options, depth + 1, budget))
        else:
            yield from _nested(_mail_within(inner, options, depth + 1, budget))
    except DocumentError as exc:
        yield _note(f"The attachment {name} could not be read: {exc.public_message}")


def _file_blocks(data: bytes, name: str, options: ReadOptions, depth: int, budget: Budget) -> Iterator[Block]:
    # Here, because the registry knows this module.
    from rag.parser import registry

    with tempfile.TemporaryDirectory(prefix="attachment-") as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        if kinds.detect(path, name) is FileKind.EMAIL:
            yield from _mail_within(parse(data), options, depth, budget)
            return
        if kinds.detect(path, name) is FileKind.MBOX:
            yield _note(f"The attachment {name} is a mailbox, and was not read.")
            return
        profile = registry.profile(path, name, options)
        yield from registry.read(path, profile, 0, profile.units, options)


def _mail_within(mail: Mail, options: ReadOptions, depth: int, budget: Budget) -> Iterator[Block]:
    if depth > MAX_DEPTH:
        yield _note("A message inside of this one was not read: too many are inside of each other.")
    else:
        yield from blocks_of_mail(mail, options, depth, budget)


def _nested(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks of an attachment: below its name, and without the places that only its own file has."""
    for block in blocks:
        level = min(block.level + 2, 9) if block.kind is BlockKind.HEADING else block.level
        table = msgspec.structs.replace(block.table, places=()) if block.table is not None else None
        yield Block(kind=block.kind, text=block.text, page=1, level=level, table=table)


def _paragraph(lines: list[str]) -> Iterator[Block]:
    if lines:
        yield Block(kind=BlockKind.PARAGRAPH, text="\n".join(lines), page=1)


def _note(text: str) -> Block:
    return Block(kind=BlockKind.PARAGRAPH, text=text, page=1)


def _children(part: Mail) -> list[Mail]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _inner_mail(part: Mail) -> Mail | None:
    return next(iter(_children(part)), None) if part.get_content_type() == "message/rfc822" else None


def _content(part: Mail) -> bytes:
    """The bytes of a part; as they stand, where nothing is left of them once decoded."""
    payload = part.get_payload(decode=True)
    if isinstance(payload, bytes) and payload:
        return payload
    raw = part.get_payload()
    return charsets.to_bytes(raw) if isinstance(raw, str) else b""


def _charset(part: Mail) -> str:
    return part.get_content_charset() or ""


def _file_name(part: Mail) -> str:
    try:
        said = part.get_filename() or ""
    except (ValueError, LookupError, TypeError):  # of an encoding that does not exist, or in parts that don't fit
        return ""
    return _SPACE.sub(" ", clean(_decoded(said))).strip()[-_MAX_NAME:]


def _made_up_name(part: Mail, number: int) -> str:
    suffix = mimetypes.guess_extension(part.get_content_type()) or ""
    return f"attachment {number}{suffix}"


def _decoded(raw: str) -> str:
    """A header's text, with its encoded words decoded and bytes beyond ASCII taken for what they likely are."""
    plain = charsets.decode(charsets.to_bytes(raw))
    if "=?" not in plain:
        return plain
    try:
        words = decode_header(plain)
    except (HeaderParseError, ValueError):
        return plain
    return "".join(_word(word, label) for word, label in words)


def _word(word: bytes | str, label: str | None) -> str:
    if isinstance(word, str):
        return word
    # What was not encoded comes back from the library in this form.
    return charsets.decode(word, label) if label else word.decode("raw-unicode-escape", "replace")
