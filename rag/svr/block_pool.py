"""A pool of parser processes for `pagemill parse`: gives the blocks as well as the chunks that are made of them, and
prints nothing of its own on the terminal."""

from __future__ import annotations

from pathlib import Path

from common.errors import ParserLost
from rag.flow.split import range_text
from rag.parser.blocks import Block
from rag.svr.parser_pool import Config, OnProgress, ParseJob, ParserPool
from rag.svr.parser_protocol import Parse, ParseBlocks, Parsed, ParsedChunk


class BlockPool(ParserPool):
    """`blocks` are those of every range that was read whole, in the order in which they were asked for."""

    def __init__(self, config: Config, *, with_blocks: bool) -> None:
        super().__init__(config)
        self._request = ParseBlocks if with_blocks else Parse
        self.blocks: list[Block] = []

    async def __aenter__(self) -> BlockPool:
        return self

    async def parse(
        self, path: Path, job: ParseJob, on_progress: OnProgress, timeout_s: float | None = None
    ) -> list[ParsedChunk]:
        where = range_text(job.profile.unit, job.from_unit, job.to_unit)
        request = self._request(
            str(path.absolute()), job.profile, job.from_unit, job.to_unit, job.settings, job.options
        )
        reply = await self._ask(request, path, where, on_progress, timeout_s)
        if not isinstance(reply, Parsed):
            raise ParserLost(f"the parser process gave a wrong answer on {where}")
        self.blocks += reply.blocks
        return reply.chunks

    def _command(self) -> list[str]:
        return [*super()._command(), "--quiet"]
