"""Docs that are made from the code stay so, and point at files that are there."""

from __future__ import annotations

import re
import subprocess
import sys

from common.settings import ROOT


def test_the_page_of_states_is_made_from_the_tables() -> None:
    printed = subprocess.run(
        [sys.executable, "tools/state_diagram.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert (ROOT / "docs" / "states.md").read_text(encoding="utf-8") == printed


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = [
        (page.name, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_locks_carry_hashes_and_no_addresses() -> None:
    for lock in ("run.txt", "dev.txt", "model.txt"):
        text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
        assert "--hash=sha256:" in text
        assert not re.search(r"https?://|index-url", text)
