"""A knowledge base as a card: its counts, its size, and the one state that matters most of what is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.apps.services import services
from api.db.services.dataset_service import DatasetView
from common.task_state import DocumentRun


@dataclass(frozen=True)
class Card:
    """`state` is a key of components/state.html, `word` what it says."""

    dataset: DatasetView
    state: str
    word: str


def cards_of(datasets: Sequence[DatasetView]) -> list[Card]:
    runs = services().datasets.run_counts([dataset.id for dataset in datasets])
    return [Card(dataset, *_state(runs.get(dataset.id, {}))) for dataset in datasets]


def _state(runs: Mapping[DocumentRun, int]) -> tuple[str, str]:
    """What is on its way first, then what failed, then what nobody has started."""
    if count := runs.get(DocumentRun.RUNNING, 0):
        return "running", f"{count:,} on the way"
    if count := runs.get(DocumentRun.FAIL, 0):
        return "failed", f"{count:,} failed"
    if count := runs.get(DocumentRun.UNSTART, 0) + runs.get(DocumentRun.CANCEL, 0):
        return "unstarted", f"{count:,} not parsed"
    return ("done", "All ready") if runs.get(DocumentRun.DONE) else ("none", "Empty")
