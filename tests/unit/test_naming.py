"""The next free name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.db.services.naming import extension, free_name, name_key


def free(name: str, *used: str, max_bytes: int = 255) -> str:
    keys = {name_key(one) for one in used}

    def taken(wanted: Sequence[str]) -> set[str]:
        return keys.intersection(wanted)

    return free_name(name, taken, max_bytes)


@pytest.mark.parametrize(
    ("name", "used", "expected"),
    [
        ("a", (), "a"),
        ("a", ("a",), "a(1)"),
        ("A", ("a",), "A(1)"),
        ("a.txt", ("a.txt",), "a(1).txt"),
        ("a(1).txt", ("a(1).txt",), "a(2).txt"),
        (".env", (".env",), ".env(1)"),
        ("a", ("a", *(f"a({n})" for n in range(1, 2000))), "a(2000)"),
        ("x" * 10, ("x" * 10,), "x" * 7 + "(1)"),
        ("ü" * 5, ("ü" * 5,), "ü" * 3 + "(1)"),
    ],
)
def test_the_number_goes_before_the_extension(name: str, used: tuple[str, ...], expected: str) -> None:
    assert free(name, *used, max_bytes=10) == expected


@given(st.text(min_size=1, max_size=40), st.integers(0, 30))
def test_a_free_name_is_free_and_fits(name: str, count: int) -> None:
    most = max(64, len(name.encode("utf-8", "surrogatepass")))
    if any("\ud800" <= char <= "\udfff" for char in name):
        return
    used: list[str] = []
    for _ in range(count):
        found = free(name, *used, max_bytes=most)
        assert name_key(found) not in {name_key(one) for one in used}
        assert len(found.encode()) <= most
        used.append(found)


def test_keys_fit_their_column_and_stay_apart() -> None:
    long, longer = "ΐ" * 127, "ΐ" * 126 + "Ϊ"
    assert len(name_key(long)) == len(name_key(longer)) == 255
    assert name_key(long) != name_key(longer)


def test_extension() -> None:
    assert [extension(name) for name in ("a.PDF", "a.tar.gz", "noext", ".env", "a.")] == ["pdf", "gz", "", "env", ""]
