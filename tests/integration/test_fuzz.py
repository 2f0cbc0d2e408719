"""A minute of mutated files; `make fuzz` goes on for as long as asked. FUZZ_SECONDS and FUZZ_SEED change it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz import fuzz

pytestmark = pytest.mark.timeout(240)


async def test_mutated_files_give_text_or_a_clear_error(tmp_path: Path) -> None:
    findings = await fuzz(float(os.environ.get("FUZZ_SECONDS", "60")), int(os.environ.get("FUZZ_SEED", "1")), tmp_path)
    print(f"{findings.tried} files: {dict(findings.outcomes)}")
    assert findings.tried >= 100
    assert findings.outcomes["read"] and findings.outcomes["refused"]
    assert findings.unforeseen == []
    assert findings.outcomes["too slow"] + findings.outcomes["process lost"] <= findings.tried / 100
