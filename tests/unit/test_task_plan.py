"""Which ranges a document falls into."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.services.task_plan import ModelTraits, PlannedFile, plan_ranges, read_options
from common.settings import TaskSettings
from rag.parser.blocks import FileKind, Profile, Unit


def ranges_of(profile: Profile, method: str = "naive", **config: Any) -> list[tuple[int, int]]:
    file = PlannedFile("d" * 64, "a.pdf", method, config, "m", ModelTraits(256))
    return [(each.from_page, each.to_page) for each in plan_ranges(file, profile, TaskSettings())]


def pages(count: int, scanned: float = 0.0) -> Profile:
    return Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=count, scanned=scanned)


def test_twelve_pages_a_task_unless_the_document_says_otherwise() -> None:
    assert ranges_of(pages(30)) == [(0, 12), (12, 24), (24, 30)]
    assert ranges_of(pages(30), task_page_size=20) == [(0, 20), (20, 30)]


def test_a_text_of_many_pages_is_read_in_one_go_and_a_long_one_in_large_ranges() -> None:
    assert ranges_of(pages(48)) == [(0, 12), (12, 24), (24, 36), (36, 48)]
    assert ranges_of(pages(49)) == [(0, 49)]
    assert ranges_of(pages(120)) == [(0, 120)]
    assert ranges_of(pages(121)) == [(0, 60), (60, 120), (120, 121)]
    assert ranges_of(pages(1000))[:2] == [(0, 60), (60, 120)]
    assert ranges_of(pages(1000), task_page_size=12)[:2] == [(0, 12), (12, 24)]


def test_where_some_pages_are_scans_they_are_shared_out() -> None:
    assert ranges_of(pages(100, scanned=0.1)) == [(0, 50), (50, 100)]


def test_scans_go_by_two() -> None:
    assert ranges_of(pages(5, scanned=1.0)) == [(0, 2), (2, 4), (4, 5)]
    assert ranges_of(pages(5, scanned=0.1)) == [(0, 5)]
    assert ranges_of(pages(5, scanned=1.0), task_page_size=5) == [(0, 5)]


def test_mailboxes_go_by_fewer_mails_than_sheets_by_rows() -> None:
    def rows(kind: FileKind) -> list[tuple[int, int]]:
        return ranges_of(Profile(kind=kind, unit=Unit.ROW, units=1200))

    assert rows(FileKind.MBOX) == [(0, 500), (500, 1000), (1000, 1200)]
    assert rows(FileKind.CSV) == [(0, 1200)]


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
        file = PlannedFile("d" * 64, "a.pdf", "naive", config, "m", ModelTraits(256))
        return plan_ranges(file, pages(1), TaskSettings())[0].digest

    assert len({digest(), digest(password="sesame"), digest(password="other")}) == 3
    assert digest(password="sesame") == digest(password="sesame")


def test_only_pages_that_may_be_read_for_a_range_change_its_digest() -> None:
    def digests(profile: Profile, **config: Any) -> dict[int, str]:
        size = {} if profile.scanned else {"task_page_size": 12}
        file = PlannedFile("d" * 64, "a.pdf", "naive", config | size, "m", ModelTraits(256))
        return {each.from_page: each.digest for each in plan_ranges(file, profile, TaskSettings())}

    every = digests(pages(60))
    # A paragraph at the end of the range may run on into the next pages, and one before it may end in it.
    assert digests(pages(60), pages=[[1, 60]]) == every
    assert digests(pages(60), pages=[[1, 12], [13, 60]]) == every
    assert digests(pages(60), pages=[[1, 24]])[0] == every[0]
    assert digests(pages(60), pages=[[1, 12]])[0] != every[0]
    assert digests(pages(60), pages=[[13, 24], [25, 60]])[12] != every[12]
    scans = pages(24, scanned=1.0)
    assert digests(scans, pages=[[1, 2]])[0] == digests(scans)[0]


def test_the_pages_that_are_wanted_go_with_the_options() -> None:
    assert read_options({"pages": [[1, 3], [7, 7]]}).pages == ((1, 3), (7, 7))
    assert read_options({"pages": None}).pages == ()


def test_a_files_name_counts_only_where_it_is_weighted_into_the_vectors() -> None:
    def digests(name: str, config: dict[str, object]) -> list[str]:
        file = PlannedFile("f" * 64, name, "naive", config, "model", ModelTraits(256))
        profile = Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=20)
        return [each.digest for each in plan_ranges(file, profile, TaskSettings())]

    assert digests("a.pdf", {}) == digests("b.pdf", {})
    weighted = {"filename_embd_weight": 0.1}
    assert digests("a.pdf", weighted) == digests("a.pdf", weighted)
    assert not set(digests("a.pdf", weighted)) & set(digests("b.pdf", weighted))
