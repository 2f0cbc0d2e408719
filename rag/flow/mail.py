"""Mail: what was written, and apart from it the older mail that it quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from rag.flow.parts import Part, cut_block
from rag.parser.blocks import Block, BlockKind

_QUOTED = re.compile(r"[ \t]*>")
_SAID = re.compile(
    r"[ \t]*(?:On\b.{4,200}?\bwrote|Am\b.{4,200}?\bschrieb\b.{0,99}?|Le\b.{4,200}?\ba \u00e9crit)\s*:[ \t]*(?:\n|$)",
    re.DOTALL,
)
# What stands below one of these is older mail to its end.
_OLDER = re.compile(
    r"[ \t]*(?:-{2,}\s*(?:Original Message|Forwarded message|Urspr\u00fcngliche Nachricht)\s*-{2,}|_{10,}\s*\n\s*From:|"
    r"From:[^\n]*\n(?:Sent|Date):)",
    re.IGNORECASE,
)


def mail_parts(blocks: Sequence[Block]) -> list[Part]:
    """Runs of blocks that are quoted or are not; a heading (a subject, an attachment) ends what is quoted."""
    parts: list[Part] = []
    held: list[Block] = []
    quoting = older = headed = False
    for block in chain.from_iterable(map(_cut_at_quotes, blocks)):
        if block.kind is BlockKind.HEADING:
            quoted = older = False
        else:
            # The header of the mail itself is no quotation.
            older = older or (headed and bool(_OLDER.match(block.text)))
            quoted = older or bool(_QUOTED.match(block.text) or _SAID.match(block.text))
        if held and (quoted != quoting or (block.kind is BlockKind.HEADING and held[-1].kind is not block.kind)):
            parts.append(Part(held))
            held = []
        quoting = quoted
        headed = True
        held.append(block)
    if held:
        parts.append(Part(held))
    return parts


def _cut_at_quotes(block: Block) -> Iterator[Block]:
    if block.kind is not BlockKind.PARAGRAPH:
        yield block
        return
    yield from cut_block(block, list(_borders(block.text)))


def _borders(text: str) -> Iterator[int]:
    """Where a line of the text is quoted and the one before it is not, or the other way round."""
    quoting: bool | None = None
    for line in re.finditer(r"[^\n]*\n?", text):
        start = line.start()
        if not line[0].strip():
            continue
        starts_quote = bool(_SAID.match(text, start) or _OLDER.match(text, start))
        quoted = starts_quote or bool(_QUOTED.match(line[0]))
        if start and (starts_quote or (quoting is not None and quoted != quoting)):
            yield start
        quoting = quoted
