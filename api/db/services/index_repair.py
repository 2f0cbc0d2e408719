"""Putting right what an audit of the index found: chunks that nobody needs are deleted, and documents that lack some
are parsed again. A parse copies the ranges whose chunks are all there and reads the others anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.services.index_judgement import Finding
from api.db.services.parse_service import ParseService
from rag.utils.doc_index import DocIndex


@dataclass(frozen=True)
class Repaired:
    """`chunks` were deleted, `started` are parsed again, `busy` were being parsed already; `left` are findings that
    only a person can judge."""

    chunks: int
    started: list[str]
    busy: list[str]
    left: list[Finding]


def repair(findings: Sequence[Finding], index: DocIndex, parsing: ParseService) -> Repaired:
    """Raises IndexUnavailable; what was done until then stays."""
    chunks = 0
    for finding in findings:
        for scope in finding.doomed:
            chunks += index.count(scope)
            index.delete(scope)
    wanted = list(dict.fromkeys(finding.document_id for finding in findings if finding.to_parse))
    started = parsing.start(wanted) if wanted else []
    busy = [document_id for document_id in wanted if document_id not in set(started)]
    left = [finding for finding in findings if not finding.doomed and not finding.to_parse]
    return Repaired(chunks, started, busy, left)
