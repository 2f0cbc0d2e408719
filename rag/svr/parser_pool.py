"""The warm parser processes of one executor: hands each request to one, and kills the one that crashes,
hangs, runs out of memory or is no longer waited for. What they do is in parser_child."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import trio

from common.errors import ParserKilled, ParserLost, ParserNotStarted, ParserTimeout, from_code
from common.settings import EmbeddingSettings, Settings
from rag.flow.chunk import ChunkSettings
from rag.flow.split import range_text
from rag.parser.blocks import PLAIN, Block, Profile, ReadOptions
from rag.svr.parser_process import BadFrame, Disconnected, ParserProcess
from rag.svr.parser_protocol import (
    Failed,
    NamedFile,
    Parse,
    Parsed,
    ParsedChunk,
    Part,
    Prepare,
    Prepared,
    Progress,
    Ready,
    Request,
)
from rag.svr.scratch import Scratch, remove
from rag.utils.embedders import embeds_where_parsed

log = logging.getLogger(__name__)
OnProgress = Callable[[int], None]
Answer = Prepared | Parsed | Failed
# How often a process is started for one request: one may be hit by a blow from outside.
_STARTS = 3


@dataclass(frozen=True)
class Config:
    """`embeds`: chunks come with their vectors, by the packaged model."""

    embedding: EmbeddingSettings
    embeds: bool = False
    max_parsers: int = 1
    timeout_s: float = 300.0
    memory_mb: int = 4096
    tasks_per_process: int = 500
    start_timeout_s: float = 60.0

    @classmethod
    def of(cls, settings: Settings) -> Config:
        return cls(
            embedding=settings.embedding,
            embeds=embeds_where_parsed(settings),
            max_parsers=settings.executor.max_parsers,
            timeout_s=settings.parser.timeout_s,
            memory_mb=settings.parser.memory_mb,
            tasks_per_process=settings.parser.tasks_per_process,
        )


@dataclass(frozen=True)
class ParseJob:
    """A range of a document, and how to cut it."""

    profile: Profile
    from_unit: int
    to_unit: int
    settings: ChunkSettings
    options: ReadOptions = PLAIN
    named: NamedFile | None = None


class _Child:
    """A process with what the pool remembers of it, and the folder of its temporary files."""

    def __init__(self, process: ParserProcess, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.path: Path | None = None
        self.tasks = 0


class ParserPool:
    """Use as an async context manager, around the tasks that call it: leaving it kills every process.

    A cancelled call kills its process before it lets the cancel pass, within milliseconds. The processes die
    with the thread that runs trio here: it must be one that lasts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._limiter = trio.CapacityLimiter(config.max_parsers)
        self._children: set[_Child] = set()
        self._idle: list[_Child] = []
        self._scratch = Scratch()
        self._closed = False

    async def __aenter__(self) -> ParserPool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A call that is still under way ends with ParserLost."""
        self._closed = True
        while self._idle:
            await self._discard(self._idle.pop())
        for child in self._children:
            child.process.signal_kill()
        self._scratch.close()

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(sorted(child.process.pid for child in self._children))

    async def warm(self) -> None:
        """Start every process now, so that the first document does not wait for its imports."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._config.max_parsers):
                nursery.start_soon(self._warm_one)

    async def _warm_one(self) -> None:
        async with self._limiter:
            try:
                self._idle.append(await self._start())
            except ParserLost as exc:
                log.warning("%s; the first task will try again", exc)

    async def prepare(self, path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
        """The profile of the file. Raises a DocumentError, ParserLost or AttemptFailed."""
        reply = await self._ask(Prepare(str(path.absolute()), name, options), path, name, None)
        if not isinstance(reply, Prepared):
            raise ParserLost(f"the parser process gave a wrong answer on {name}")
        return reply.profile

    @property
    def timeout_s(self) -> float:
        """How long a range may take."""
        return self._config.timeout_s

    async def parse(
        self, path: Path, job: ParseJob, on_progress: OnProgress, timeout_s: float | None = None
    ) -> list[ParsedChunk]:
        """The chunks of a range. `on_progress` hears how many of its units are done, a few times a second.

        Raises a DocumentError, ParserLost or AttemptFailed."""
        where = range_text(job.profile.unit, job.from_unit, job.to_unit)
        request = Parse(
            str(path.absolute()), job.profile, job.from_unit, job.to_unit, job.settings, job.options, job.named
        )
        reply = await self._ask(request, path, where, on_progress, timeout_s)
        if not isinstance(reply, Parsed):
            raise ParserLost(f"the parser process gave a wrong answer on {where}")
        return reply.chunks

    async def _ask(
        self,
        request: Request,
        path: Path,
        where: str,
        on_progress: OnProgress | None,
        timeout_s: float | None = None,
    ) -> Answer:
        async with self._limiter:
            child = await self._take(path)
            reply: Answer | None = None
            try:
                reply = await self._converse(child, request, where, on_progress, timeout_s or self.timeout_s)
            finally:
                if _is_sound(reply):
                    await self._give_back(child, path)
                else:
                    await self._discard(child)
        if isinstance(reply, Failed):
            raise from_code(reply.code, reply.message)
        return reply

    async def _converse(
        self, child: _Child, request: Request, where: str, on_progress: OnProgress | None, timeout_s: float
    ) -> Answer:
        try:
            with trio.fail_after(timeout_s):
                await child.process.send(request)
                return await _answer(child.process, on_progress)
        except trio.TooSlowError as exc:
            raise ParserTimeout(f"the parser process took longer than {timeout_s:g} s on {where}") from exc
        except Disconnected as exc:
            status = await child.process.kill()
            lost = ParserKilled if status == -signal.SIGKILL else ParserLost
            raise lost(f"the parser process died ({_cause(status)}) on {where}") from exc
        except BadFrame as exc:
            raise ParserLost(f"the parser process {exc} on {where}") from exc

    async def _take(self, path: Path) -> _Child:
        """An idle process, best the one that has this file open; a new one where none is left alive."""
        while self._idle:
            child = next((child for child in self._idle if child.path == path), self._idle[0])
            self._idle.remove(child)
            if child.process.is_alive:
                return child
            await self._discard(child)
        for _ in range(_STARTS - 1):
            try:
                return await self._start()
            except ParserNotStarted as exc:
                if self._closed:
                    raise
                log.warning("%s; it is started again", exc)
        return await self._start()

    async def _give_back(self, child: _Child, path: Path) -> None:
        child.path, child.tasks = path, child.tasks + 1
        if child.tasks >= self._config.tasks_per_process:
            await self._discard(child)
        else:
            self._idle.append(child)

    async def _discard(self, child: _Child) -> None:
        await child.process.kill()
        self._children.discard(child)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(remove, child.folder)

    async def _start(self) -> _Child:
        folder = await trio.to_thread.run_sync(self._scratch.add)
        child = _Child(ParserProcess(self._command(), {**os.environ, "TMPDIR": str(folder)}), folder)
        self._children.add(child)
        ready = False
        try:
            with trio.fail_after(self._config.start_timeout_s):
                reply = await child.process.receive()
            ready = isinstance(reply, Ready)
        except trio.TooSlowError as exc:
            limit = f"{self._config.start_timeout_s:g} s"
            raise ParserNotStarted(f"the parser process did not start within {limit}") from exc
        except Disconnected as exc:
            status = await child.process.kill()
            raise ParserNotStarted(f"the parser process died ({_cause(status)}) while it started") from exc
        except BadFrame as exc:
            raise ParserNotStarted(f"the parser process {exc} while it started") from exc
        finally:
            if not ready:
                await self._discard(child)
        if isinstance(reply, Failed):
            raise from_code(reply.code, reply.message)
        return child

    def _command(self) -> list[str]:
        embedding = self._config.embedding
        return [
            *(sys.executable, "-m", "rag.svr.parser_child"),
            *("--parent", str(os.getpid())),
            *("--memory-mb", str(self._config.memory_mb)),
            *("--model", embedding.model, "--model-dir", embedding.model_dir),
            *("--tokenizer-file", embedding.tokenizer_file),
            *(("--embeds",) if self._config.embeds else ()),
        ]


async def _answer(process: ParserProcess, on_progress: OnProgress | None) -> Answer:
    chunks: list[ParsedChunk] = []
    blocks: list[Block] = []
    while True:
        match await process.receive():
            case Progress(units_done):
                if on_progress is not None:
                    on_progress(units_done)
            case Ready():
                raise BadFrame("spoke out of turn")
            case Part(more, read):
                chunks += more
                blocks += read
            case Parsed(last, rest):
                return Parsed(chunks + last, blocks + rest)
            case Prepared() | Failed() as answer:
                return answer


def _is_sound(reply: Answer | None) -> bool:
    """Whether the process can serve on: it answered, and not that it ran out of memory."""
    return reply is not None and not (isinstance(reply, Failed) and reply.code == ParserLost.code)


def _cause(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"
