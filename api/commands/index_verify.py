"""What `pagemill index verify` does, and how findings are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.commands.options import print_json, print_table, say
from api.db.services.index_audit import Audit, AuditService
from api.db.services.index_judgement import Finding
from api.instance import open_existing_rows
from common.settings import Settings
from rag.utils.doc_indexes import open_index

_COLUMNS = ("document", "name", "what is wrong", "chunks", "instead of", "what repair does")


def run_verify(settings: Settings, *, as_json: bool) -> bool:
    """True if nothing is wrong."""
    index = open_index(settings)
    audit = AuditService(open_existing_rows(settings), index).run()
    index.close()
    if as_json:
        print_json(as_facts(audit))
    else:
        show(audit)
    return audit.is_sound


def show(audit: Audit) -> None:
    if audit.findings:
        print_table("What is wrong", _COLUMNS, [_line(finding) for finding in audit.findings], whole=("document",))
    wrong = len({finding.document_id for finding in audit.findings})
    verdict = f"{wrong} of them wrong" if wrong else "as the rows say"
    if audit.damage:
        say(f"{audit.damage}: repair makes it anew")
    say(f"{audit.documents} documents with {audit.chunks} chunks in the index, {verdict}")


def as_facts(audit: Audit) -> dict[str, Any]:
    return {
        "documents": audit.documents,
        "chunks": audit.chunks,
        "damage": audit.damage,
        "findings": [_facts(finding) for finding in audit.findings],
    }


def plan_of(finding: Finding) -> str:
    """What a repair does about it."""
    if finding.to_parse:
        return f"parses {_ranges_text(finding.ranges)} again" if finding.ranges else "parses it again"
    if finding.doomed:
        return "deletes them"
    return "nothing: the tenant is not in this database"


def _facts(finding: Finding) -> dict[str, Any]:
    return {
        "document_id": finding.document_id,
        "name": finding.name,
        "dataset_id": finding.dataset_id,
        "tenant_id": finding.tenant_id,
        "wrong": str(finding.wrong),
        "expected": finding.expected,
        "found": finding.found,
        "ranges": [list(pages) for pages in finding.ranges],
        "repair": plan_of(finding),
    }


def _line(finding: Finding) -> tuple[object, ...]:
    told = (finding.document_id, finding.name or "(no such document)", finding.wrong)
    return (*told, finding.found, finding.expected, plan_of(finding))


def _ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{first}-{last}" for first, last in ranges[:5])
    return f"{shown} and {len(ranges) - 5} more" if len(ranges) > 5 else shown
