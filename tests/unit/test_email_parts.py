"""E-mail: messages, their attachments, mailboxes, and what is broken in them."""

from __future__ import annotations

import random
from email.message import EmailMessage
from pathlib import Path

import pytest

from common.errors import EmptyFile
from rag.parser import email_message, email_parts
from rag.parser.blocks import Block, BlockKind, FileKind, Unit
from rag.parser.email_message import MAX_ATTACHMENTS, MIN_INLINE_IMAGE_BYTES

Seen = tuple[BlockKind, int, str]
_SHOWN = "From: Zoë <zoe@example.org>\nTo: ada@example.org\nDate: Tue, 02 Jan 2024 10:20:30 +0000"


def _mail(subject: str = "Grüße aus Köln", body: str = "Hello,\n\nall is well.\n") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Zoë <zoe@example.org>"
    mail["To"] = "ada@example.org"
    mail["Subject"] = subject
    mail["Date"] = "Tue, 02 Jan 2024 10:20:30 +0000"
    mail.set_content(body)
    return mail


def _read(tmp_path: Path, data: bytes, name: str = "a.eml") -> list[Block]:
    path = tmp_path / "blob"
    path.write_bytes(data)
    profile = email_parts.profile(path, name)
    return list(email_parts.read(path, profile, 0, profile.units))


def _seen(tmp_path: Path, data: bytes) -> list[Seen]:
    return [(block.kind, block.level, block.text) for block in _read(tmp_path, data)]


def _texts(tmp_path: Path, data: bytes) -> list[str]:
    return [block.text for block in _read(tmp_path, data)]


def test_a_message(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(_mail().as_bytes())
    profile = email_parts.profile(path, "a.eml")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.EMAIL, Unit.WHOLE, 1)
    assert (profile.title, profile.author) == ("Grüße aus Köln", "Zoë <zoe@example.org>")
    assert profile.created == "2024-01-02T10:20:30+00:00"
    assert _seen(tmp_path, path.read_bytes()) == [
        (BlockKind.HEADING, 1, "Grüße aus Köln"),
        (BlockKind.PARAGRAPH, 0, _SHOWN),
        (BlockKind.PARAGRAPH, 0, "Hello,"),
        (BlockKind.PARAGRAPH, 0, "all is well."),
    ]


def test_the_plain_form_of_a_text_is_read(tmp_path: Path) -> None:
    mail = _mail()
    mail.add_alternative("<p>Hello in HTML</p>", subtype="html")
    assert _texts(tmp_path, mail.as_bytes())[2:] == ["Hello,", "all is well."]


@pytest.mark.parametrize("cte", ["quoted-printable", "base64", "8bit"])
def test_html_is_read_where_there_is_no_plain_text(tmp_path: Path, cte: str) -> None:
    mail = _mail(body=" \n")
    mail.add_alternative("<h2>Café</h2><table><tr><td>a<td>b</table>", subtype="html", cte=cte)
    assert _seen(tmp_path, mail.as_bytes())[2:] == [
        (BlockKind.HEADING, 2, "Café"),
        (BlockKind.TABLE, 0, "a\tb"),
    ]


def test_attachments_are_read_like_files(tmp_path: Path) -> None:
    mail = _mail()
    mail.add_attachment("# Plan\n\nfirst\n", subtype="markdown", filename="plän.md")
    mail.add_attachment(b"\x00\x01\x02" * 50, maintype="application", subtype="octet-stream", filename="blob.bin")
    mail.add_attachment(b"sig", maintype="application", subtype="pgp-signature", filename="signature.asc")
    blocks = _seen(tmp_path, mail.as_bytes())[4:]
    assert blocks[:4] == [
        (BlockKind.HEADING, 2, "plän.md"),
        (BlockKind.HEADING, 3, "Plan"),
        (BlockKind.PARAGRAPH, 0, "first"),
        (BlockKind.HEADING, 2, "blob.bin"),
    ]
    assert len(blocks) == 5
    assert blocks[4][2].startswith("The attachment blob.bin could not be read: blob.bin is ")


def test_images_that_a_text_shows(tmp_path: Path) -> None:
    mail = _mail()
    mail.add_related(b"x" * 100, maintype="image", subtype="png", cid="<logo>")
    assert len(_read(tmp_path, mail.as_bytes())) == 4
    mail.add_related(b"x" * MIN_INLINE_IMAGE_BYTES, maintype="image", subtype="png", cid="<photo>")
    assert _texts(tmp_path, mail.as_bytes())[4] == "attachment 1.png"


def test_messages_inside_of_messages(tmp_path: Path) -> None:
    mail = _mail("0")
    for number in range(1, 7):
        outer = _mail(str(number), "text\n")
        outer.add_attachment(mail)
        mail = outer
    blocks = _seen(tmp_path, mail.as_bytes())
    assert blocks[:5] == [
        (BlockKind.HEADING, 1, "6"),
        (BlockKind.PARAGRAPH, 0, _SHOWN),
        (BlockKind.PARAGRAPH, 0, "text"),
        (BlockKind.HEADING, 2, "5"),
        (BlockKind.HEADING, 3, "5"),
    ]
    assert [text for kind, _, text in blocks if kind is BlockKind.HEADING] == ["6", "5", "5", "4", "4", "3", "3", "2"]
    assert blocks[-1][2].startswith("A message inside of this one was not read")


def test_too_many_and_too_large_attachments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(email_message, "MAX_ATTACHMENT_BYTES", 100)
    mail = _mail()
    mail.add_attachment("x" * 200, filename="large.txt")
    for number in range(MAX_ATTACHMENTS + 1):
        mail.add_attachment("words", filename=f"{number}.txt")
    texts = _texts(tmp_path, mail.as_bytes())
    assert texts[5] == "The attachment large.txt was not read: it is too large."
    assert texts[-1] == f"The attachment {MAX_ATTACHMENTS}.txt was not read: the message has too many attachments."
    assert texts.count("words") == MAX_ATTACHMENTS


@pytest.mark.parametrize(
    ("raw", "subject"),
    [
        (b"=?utf-8?q?caf=C3=A9?= and =?iso-8859-1?q?t=E9?=", "café and té"),
        (b"=?utf-8?b?Y2Fm?=\r\n =?utf-8?b?w6k=?=", "café"),
        ("Grüße roh".encode(), "Grüße roh"),
        (b"=?nowhere?q?plain?=", "plain"),
        (b"=?utf-8?b?!!!?= x", "x"),
        (b"=?idna?q?x=FF?=", None),
        (b"=?utf-7?q?+2AA-?=", None),
    ],
)
def test_subjects(tmp_path: Path, raw: bytes, subject: str | None) -> None:
    blocks = _read(tmp_path, b"From: a@b.c\r\nSubject: " + raw + b"\r\n\r\nwords\r\n")
    assert blocks[-1].text == "words"
    for block in blocks:
        block.text.encode()
    if subject is not None:
        assert blocks[0].text == subject


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        (b"Content-Type: text/plain; charset=koi8-r", "Привет".encode("koi8-r"), "Привет"),
        (b"Content-Type: text/plain; charset=nowhere", "Grüße".encode(), "Grüße"),
        (b"Content-Type: text/plain", "fermé à cause de la grève".encode("cp1252"), "fermé à cause de la grève"),
        (b"Content-Type: text/plain; charset=iso-2022-jp", "日本語".encode("iso2022_jp"), "日本語"),
        (b"Content-Transfer-Encoding: base64", b"####", "####"),
        (b"Content-Transfer-Encoding: quoted-printable", b"a=ZZ=\r\nb", "a=ZZb"),
        (b"Content-Type: multipart/mixed", b"no boundary", "no boundary"),
        (b"Content-Type: multipart/mixed; boundary=x", b"--x\r\n\r\nnever closed", "never closed"),
        (b"Content-Type: ;;;", b"words", "words"),
    ],
)
def test_broken_messages(tmp_path: Path, head: bytes, body: bytes, text: str) -> None:
    blocks = _read(tmp_path, b"From: a@b.c\r\nSubject: s\r\n" + head + b"\r\n\r\n" + body)
    assert [block.text for block in blocks] == ["s", "From: a@b.c", text]


def test_bad_file_names(tmp_path: Path) -> None:
    for value in (b"filename*=idna'x'%ff", b"filename*0*=utf-8''a; filename*2=b", b"filename*=", b"filename=\xff.txt"):
        data = b"From: a@b.c\r\nContent-Disposition: attachment; " + value + b"\r\n\r\nwords"
        assert _texts(tmp_path, data)[-1] == "words"


def test_reports_of_delivery(tmp_path: Path) -> None:
    data = b"""From: a@b.c
Content-Type: multipart/report; boundary=x

--x
Content-Type: message/delivery-status

Reporting-MTA: dns; example.org

Action: failed
Status: 5.1.1

--x--
"""
    assert _texts(tmp_path, data)[1:] == ["Reporting-MTA: dns; example.org", "Action: failed\nStatus: 5.1.1"]


def test_encrypted_text(tmp_path: Path) -> None:
    data = b"From: a@b.c\nContent-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\nAAAA\n"
    assert _texts(tmp_path, data)[1] == "The text of this message is encrypted or sealed, and can't be read."


def test_parts_nested_without_end(tmp_path: Path) -> None:
    parts = b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(2000))
    texts = _texts(tmp_path, b"From: a@b.c\nSubject: s\n" + parts + b"\nwords\n")
    assert texts[:2] == ["s", "From: a@b.c"]
    assert "words" in texts[-1]


def test_noise_never_fails_and_most_of_the_text_stays(tmp_path: Path) -> None:
    chance = random.Random(7)
    mail = _mail()
    mail.add_alternative("<p>Hello in HTML</p>", subtype="html")
    mail.set_boundary("inner")
    mail.add_attachment("a,b\n1,2\n", subtype="csv", filename="a.csv")
    mail.set_boundary("outer")
    whole = mail.as_bytes()
    kept = 0
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(20):
            data[chance.randrange(len(data))] = chance.randrange(256)
        blocks = list(email_message.blocks_of_mail(email_message.parse(bytes(data)), email_parts.PLAIN))
        texts = [block.text for block in blocks]
        assert texts and all(text.strip() and text.encode() for text in texts)
        kept += "all is" in " ".join(texts)
    assert kept >= 60


def test_an_empty_message(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match=r"a\.eml has no text"):
        _read(tmp_path, b"X-Mailer: x\r\n\r\n \r\n")


def _mailbox(count: int) -> bytes:
    return b"".join(
        b"From zoe@example.org Tue Jan  2 10:20:30 2024\n" + _mail(f"s{number}", "t\n").as_bytes() + b"\n"
        for number in range(1, count + 1)
    )


def test_a_mailbox(tmp_path: Path) -> None:
    body = b"From here on, at 10:30:00:\n\nFrom 9:15 till noon\nno header here\n>From x\n"
    data = _mailbox(2) + b"From - \nSubject: s3\n\n" + body
    path = tmp_path / "blob"
    path.write_bytes(data)
    profile = email_parts.profile(path, "a.mbox")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.MBOX, Unit.ROW, 3)
    blocks = [(block.page, block.text) for block in email_parts.read(path, profile, 0, 3)]
    assert blocks == [
        (1, "s1"),
        (1, _SHOWN),
        (1, "t"),
        (2, "s2"),
        (2, _SHOWN),
        (2, "t"),
        (3, "s3"),
        (3, "From here on, at 10:30:00:"),
        (3, "From 9:15 till noon\nno header here\nFrom x"),
    ]


def test_ranges_of_a_mailbox_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(email_parts, "_READ_BYTES", 37)
    path = tmp_path / "blob"
    path.write_bytes(_mailbox(60))
    profile = email_parts.profile(path, "a.mbox")
    assert profile.units == 60
    for first, end in ((0, 20), (20, 40), (55, 99), (5, 6)):
        subjects = [
            block.text for block in email_parts.read(path, profile, first, end) if block.kind is BlockKind.HEADING
        ]
        assert subjects == [f"s{number}" for number in range(first + 1, min(end, 60) + 1)]


def test_a_message_too_large_for_its_mailbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(email_parts, "MAX_MESSAGE_BYTES", 1000)
    texts = [block.text for block in _read(tmp_path, _mailbox(1) + b"x\n" * 1000 + _mailbox(1), "a.mbox")]
    assert texts == ["This message is too large, and was not read.", "s1", _SHOWN, "t"]


def test_a_mailbox_without_messages(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match=r"a\.mbox has no messages"):
        _read(tmp_path, b"From nobody\n\nnothing", "a.mbox")
