"""How far a request has come, told from its first bytes, wherever they end."""

from __future__ import annotations

import pytest

from api.web_heads import MOST_BYTES, Come, judged

LENGTH = b"POST /a HTTP/1.1\r\nHost: x\r\nCONTENT-Length: 5 \r\n\r\nhello"
LAST = b"POST /a HTTP/1.1\r\nContent-Length:5\r\n\r\nhello"
CODED = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS = CODED + b"5;a=b\r\n0\r\n\r\n\r\nA\r\n0123456789\r\n0\r\nSum: 1\r\n\r\n"


@pytest.mark.parametrize("whole", [b"GET / HTTP/1.1\r\n\r\n", b"\r\n\r\nGET / HTTP/1.0\r\n\r\n", LENGTH, LAST, CHUNKS])
def test_a_request_is_whole_with_its_last_byte(whole: bytes) -> None:
    for at in range(1, len(whole)):
        look = judged(whole[:at])
        assert look.come is Come.PARTIAL and at == look.size < look.wanted <= len(whole), whole[:at]
    assert judged(whole).come is Come.WHOLE
    assert judged(whole + whole).come is Come.WHOLE


def test_all_of_a_body_is_waited_for_at_once() -> None:
    assert judged(LENGTH[:-4]).wanted == len(LENGTH)


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /a HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % MOST_BYTES,
        CODED + b"8000\r\n",
        CODED + b"1\r\na\r\n" * (MOST_BYTES // 6),
        CODED + b"zz\r\n",
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n 5\r\nhello\r\n",
    ],
)
def test_what_is_too_large_or_badly_told_is_read_as_it_comes(sent: bytes) -> None:
    assert judged(sent).come is Come.STREAMED


def test_who_expects_leave_is_known_by_its_header() -> None:
    asks = b"POST /a HTTP/1.1\r\nHost: x\r\nexpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"
    assert judged(asks).expects_leave
    assert not judged(asks.replace(b"HTTP/1.1", b"HTTP/1.0")).expects_leave
    assert not judged(asks.replace(b"expect:", b"x-expect:")).expects_leave
