"""Which ranges a document falls into."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.services.task_plan import PlannedFile, plan_ranges, read_options
from common.settings import TaskSettings
from rag.parser.blocks import FileKind, Profile, Unit


def ranges_of(profile: Profile, method: str = "naive", **config: Any) -> list[tuple[int, int]]:
    file = PlannedFile("d" * 64, "a.pdf", method, config, "m", 256)
    return [(each.from_page, each.to_page) for each in plan_ranges(file, profile, TaskSettings())]


def pages(count: int, scanned: float = 0.0) -> Profile:
    return Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=count, scanned=scanned)


def test_twelve_pages_a_task_unless_the_document_says_otherwise() -> None:
    assert ranges_of(pages(30)) == [(0, 12), (12, 24), (24, 30)]
    assert ranges_of(pages(30), task_page_size=20) == [(0, 20), (20, 30)]


def test_scans_go_by_two() -> None:
    assert ranges_of(pages(5, scanned=1.0)) == [(0, 2), (2, 4), (4, 5)]
    assert ranges_of(pages(5, scanned=0.1)) == [(0, 5)]
    assert ranges_of(pages(5, scanned=1.0), task_page_size=5) == [(0, 5)]


def test_one_chunk_needs_one_range() -> None:
    assert ranges_of(pages(30), "one") == [(0, 30)]


@pytest.mark.parametrize(
    ("config", "ocr"),
    [({}, True), ({"layout_recognize": "DeepDOC"}, True), ({"layout_recognize": "Plain Text"}, False)],
)
def test_plain_text_means_no_ocr(config: dict[str, Any], ocr: bool) -> None:
    assert read_options(config).ocr is ocr


def test_a_password_gives_other_digests_that_do_not_show_it() -> None:
    def digest(**config: Any) -> str:
        file = PlannedFile("d" * 64, "a.pdf", "naive", config, "m", 256)
        return plan_ranges(file, pages(1), TaskSettings())[0].digest

    assert len({digest(), digest(password="sesame"), digest(password="other")}) == 3
    assert digest(password="sesame") == digest(password="sesame")
