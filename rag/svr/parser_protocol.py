"""The frames between an executor and its parser processes: four bytes of length, big endian, then msgpack.

The executor asks (Prepare, Parse), and `pagemill parse` also ParseBlocks. The process says Ready once, and then
answers each request with any number of Progress and Part frames and one of Prepared, Parsed or Failed."""

from __future__ import annotations

import msgspec

from rag.flow.chunk import Chunk, ChunkSettings
from rag.parser.blocks import PLAIN, Block, Profile, ReadOptions

HEADER_BYTES = 4
MAX_FRAME_BYTES = 256 << 20


class ParsedChunk(Chunk, frozen=True):
    """A chunk with its search terms and, where this process embeds, its vector: the bytes of as many float32. They are
    made where the text is. A parent has neither, as it is not searched."""

    terms: str = ""
    vector: bytes = b""


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    path: str
    name: str
    options: ReadOptions = PLAIN


class NamedFile(msgspec.Struct, frozen=True):
    """A file whose name counts in the vectors of its chunks."""

    name: str
    weight: float


class Parse(msgspec.Struct, frozen=True, tag="parse"):
    path: str
    profile: Profile
    from_unit: int
    to_unit: int
    settings: ChunkSettings
    options: ReadOptions = PLAIN
    named: NamedFile | None = None


class ParseBlocks(Parse, frozen=True, tag="parse_blocks"):
    """The same, and the answer has the blocks as well."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process has loaded all it needs."""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    profile: Profile


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How many units of the range are done. Below 0 while the unit before the range is read, and above their number
    while units behind it are: at `units + 1` the first, and so on. What happens then is not the range's fault."""

    units_done: int


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Chunks of a large range, sent ahead of the last ones, so that no frame is large."""

    chunks: list[ParsedChunk]
    blocks: list[Block] = []


class Parsed(msgspec.Struct, frozen=True, tag="parsed"):
    """The last chunks of a range."""

    chunks: list[ParsedChunk]
    blocks: list[Block] = []


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """An error by its code in common.errors, with a message that is safe to show."""

    code: str
    message: str


Request = Prepare | Parse | ParseBlocks
Reply = Ready | Prepared | Progress | Part | Parsed | Failed

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """The whole frame."""
    body = _encoder.encode(message)
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def decode_request(body: bytes | bytearray) -> Request:
    return _requests.decode(body)


def decode_reply(body: bytes | bytearray) -> Reply:
    """Raises msgspec.DecodeError for anything that is no reply."""
    return _replies.decode(body)
