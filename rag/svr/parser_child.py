"""The parser process: `python -m rag.svr.parser_child`. Reads requests on stdin, answers on stdout, and does
in its own address space what may crash, hang or eat memory: opening files, cutting chunks, making terms; and vectors,
where the packaged model makes them.

Dies with the executor that started it. Which process gets what, and when one is killed, is the pool's."""

from __future__ import annotations

import argparse
import errno
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from common.errors import AttemptFailed, PagemillError, ParserLost
from common.process import die_with_parent, stand_back
from common.settings import EmbeddingSettings
from rag.flow.chunk import Chunk
from rag.flow.chunker import Chunker
from rag.flow.file_name import weighted, words_of_name
from rag.flow.methods import PAGE_BY_PAGE
from rag.flow.searched import searched_text
from rag.flow.split import range_text
from rag.flow.token_counter import CountTokens, token_counter
from rag.parser import across_pages, registry
from rag.parser.blocks import Block, Cell
from rag.svr.parser_protocol import (
    HEADER_BYTES,
    Failed,
    NamedFile,
    Parse,
    ParseBlocks,
    Parsed,
    ParsedChunk,
    Part,
    Prepare,
    Prepared,
    Progress,
    Ready,
    Reply,
    Request,
    decode_request,
    encode,
)
from rag.utils.embedder import Embedder, PackagedEmbedder, load_tokenizer
from rag.utils.terms import analyse

PART_CHUNKS = 1000
PROGRESS_EVERY_S = 0.25
_NICE = 5
_HASH = re.compile("[0-9a-f]{64}")

Send = Callable[[Reply], None]


class _Teller:
    """Says how far a range is."""

    def __init__(self, send: Send, from_unit: int) -> None:
        self._send = send
        self._from_unit = from_unit
        self._told, self._due_s = 0, time.monotonic() + PROGRESS_EVERY_S

    def telling(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Pass blocks on, and say now and then how many units before them are done."""
        for block in blocks:
            done = block.page - 1 - self._from_unit
            if done > self._told and time.monotonic() >= self._due_s:
                self._tell(done)
            yield block

    def neighbour(self, unit: int | None) -> None:
        """Say at once which unit beside the range is read: it may be this process's last word."""
        if unit is None:
            self._tell(self._told)
        else:
            self._send(Progress(-1 if unit < self._from_unit else unit - self._from_unit + 1))

    def _tell(self, done: int) -> None:
        self._send(Progress(done))
        self._told, self._due_s = done, time.monotonic() + PROGRESS_EVERY_S


class Worker:
    """Answers requests, one at a time."""

    def __init__(self, count: CountTokens, memory_mb: int, send: Send, embedder: Embedder | None = None) -> None:
        """Without an embedder, chunks come without vectors."""
        self._count = count
        self._embedder = embedder
        self._memory_mb = memory_mb
        self._send = send

    def answer(self, request: Request) -> None:
        """Send the answer to one request; an error is an answer."""
        try:
            self._send(self._prepare(request) if isinstance(request, Prepare) else self._parse(request))
            return
        except PagemillError as exc:
            reply = Failed(exc.code, _for_people(exc.public_message, request))
        # The edge of this process: whatever a file makes a library raise must reach the executor as an error
        # of that file's task, and the process stays good for the next.
        except Exception as exc:  # noqa: BLE001
            reply = self._unforeseen(request, exc)
        self._send(reply)

    def _unforeseen(self, request: Request, exc: Exception) -> Failed:
        where = _where(request)
        if isinstance(exc, MemoryError) or (isinstance(exc, OSError) and exc.errno == errno.ENOMEM):
            return Failed(ParserLost.code, f"the parser process needs more than {self._memory_mb} MiB on {where}")
        traceback.print_exception(exc)
        first_line = next(iter(str(exc).splitlines()), "")
        error = AttemptFailed(f"{type(exc).__name__} on {where}: {first_line}")
        return Failed(error.code, error.public_message)

    def _prepare(self, request: Prepare) -> Prepared:
        return Prepared(registry.profile(Path(request.path), request.name, request.options))

    def _parse(self, request: Parse) -> Parsed:
        path = Path(request.path)
        teller = _Teller(self._send, request.from_unit)
        wanted = (path, request.profile, request.from_unit, request.to_unit, request.options)
        blocks = (
            registry.read(*wanted)
            if request.settings.method in PAGE_BY_PAGE
            else across_pages.read(*wanted, teller.neighbour)
        )
        chunker = Chunker(self._count, request.settings, request.profile)
        read: list[Block] = []
        sound: Iterator[Block] = map(_storable_block, blocks)
        if isinstance(request, ParseBlocks):
            sound = _kept(sound, read)
        chunks = chunker.chunk(teller.telling(sound))
        gathered: list[Chunk] = []
        for chunk in chunks:
            gathered.append(_storable_chunk(chunk))
            if len(gathered) >= PART_CHUNKS:
                self._send(Part(self._searchable(gathered, request.named), read))
                gathered = []
                read.clear()
        return Parsed(self._searchable(gathered, request.named), read)

    def _searchable(self, chunks: Sequence[Chunk], named: NamedFile | None) -> list[ParsedChunk]:
        """With terms and vectors, but for parents."""
        texts = [searched_text(chunk.text, chunk.headings) for chunk in chunks if not chunk.is_parent]
        made = zip(texts, self._vectors(texts, named), strict=True)
        found = []
        for chunk in chunks:
            text, vector = ("", b"") if chunk.is_parent else next(made)
            found.append(ParsedChunk(**msgspec.structs.asdict(chunk), terms=" ".join(analyse(text)), vector=vector))
        return found

    def _vectors(self, texts: list[str], named: NamedFile | None) -> Iterable[bytes]:
        if self._embedder is None:
            return [b""] * len(texts)
        if named is None:
            return (row.tobytes() for row in self._embedder.embed(texts))
        found = self._embedder.embed([words_of_name(named.name), *texts])
        return (row.tobytes() for row in weighted(found[1:], found[0], named.weight))


def _storable_chunk(chunk: Chunk) -> Chunk:
    """A delimiter may have cut between two halves of a letter."""
    return msgspec.structs.replace(
        chunk,
        text=_storable(chunk.text),
        headings=tuple(_storable(heading) for heading in chunk.headings),
        tags=tuple(_storable(tag) for tag in chunk.tags),
        contents=tuple(msgspec.structs.replace(each, title=_storable(each.title)) for each in chunk.contents),
    )


def _kept(blocks: Iterable[Block], read: list[Block]) -> Iterator[Block]:
    for block in blocks:
        read.append(block)
        yield block


def _storable_block(block: Block) -> Block:
    """Without lone surrogates: neither the tokenizer nor anything behind it takes them."""
    text, table = _storable(block.text), block.table
    if text == block.text:
        return block
    if table is not None:
        rows = (tuple(Cell(_storable(cell.text), cell.columns, cell.rows) for cell in row) for row in table.rows)
        table = msgspec.structs.replace(table, rows=tuple(rows))
    return msgspec.structs.replace(block, text=text, table=table)


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def serve(inbox: BinaryIO, answer: Callable[[Request], None]) -> None:
    """Answer requests until the executor closes its end."""
    while len(header := inbox.read(HEADER_BYTES)) == HEADER_BYTES:
        answer(decode_request(inbox.read(int.from_bytes(header, "big"))))


def main() -> None:
    options = _options()
    die_with_parent(signal.SIGKILL, options.parent)
    _limit(options.memory_mb)
    inbox, outbox = _take_pipes(quiet=options.quiet)

    def send(reply: Reply) -> None:
        outbox.write(encode(reply))
        outbox.flush()

    settings = EmbeddingSettings(
        model=options.model, model_dir=options.model_dir, tokenizer_file=options.tokenizer_file
    )
    try:
        embedder = PackagedEmbedder(settings) if options.embeds else None
        tokenizer = embedder.tokenizer if embedder else load_tokenizer(settings)
        count = token_counter(tokenizer, embedder.words if embedder else None)
    except PagemillError as exc:
        send(Failed(exc.code, exc.public_message))
        return
    send(Ready())
    serve(inbox, Worker(count, options.memory_mb, send, embedder).answer)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rag.svr.parser_child")
    parser.add_argument("--parent", type=int, required=True, help="process id of the executor")
    parser.add_argument("--memory-mb", type=int, required=True, help="address space, in MiB")
    parser.add_argument("--model", required=True, help="embedding model whose tokens are counted")
    parser.add_argument("--model-dir", default="", help="folder of the model's files")
    parser.add_argument("--tokenizer-file", default="", help="file of another tokenizer that counts")
    parser.add_argument("--embeds", action="store_true", help="give chunks their vectors, by the packaged model")
    parser.add_argument("--quiet", action="store_true", help="print nothing: errors go to whoever asked")
    return parser.parse_args()


def _limit(memory_mb: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    stand_back(_NICE)


def _take_pipes(*, quiet: bool) -> tuple[BinaryIO, BinaryIO]:
    """The two pipes, on descriptors that no library prints to: stdout is stderr from here on."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        if quiet:
            os.dup2(nothing.fileno(), sys.stderr.fileno())
    os.dup2(sys.stderr.fileno(), 1)
    return inbox, outbox


def _for_people(message: str, request: Request) -> str:
    """Stored files are named by their hash, which tells nobody which one is meant; a range is told without its name."""
    name = Path(request.path).name
    return message.replace(name, "the file") if _HASH.fullmatch(name) else message


def _where(request: Request) -> str:
    if isinstance(request, Prepare):
        return request.name
    return range_text(request.profile.unit, request.from_unit, request.to_unit)


if __name__ == "__main__":
    main()
