"""The README's lines, run as they stand against a running instance."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.acceptance.instance import Instance, running_instance

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def instance(short_dir: Path, request: pytest.FixtureRequest) -> Iterator[Instance]:
    with running_instance(short_dir / request.node.name[:30]) as made:
        yield made


def test_the_first_call_finds_a_sentence_with_its_page_and_place(instance: Instance) -> None:
    (lines,) = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=ROOT,
        env={**instance.environ, "API": f"{instance.address}/api/v1", "PAGEMILL_DATA": str(instance.data)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    hit = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    assert "Tobias Renn, was said to know the weight of a sheet" in " ".join(hit["content"].split())
    assert hit["document_keyword"] == "paper-mill.pdf"
    page, left, right, top, bottom = hit["positions"][0]
    assert page == 2
    assert 0 < left < right < 420
    assert 0 < top < bottom < 596
    assert hit["similarity"] > 0.2
    assert instance.stop() == 0


def test_ingest_and_search_by_the_command_line(instance: Instance, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_text("this is no PDF")
    done = instance.run("ingest", "docs/examples/paper-mill.pdf", str(broken), "--dataset", "mill", check=False)
    assert done.returncode == 1
    assert "paper-mill.pdf: done:" in done.stdout
    assert "broken.pdf: failed: broken.pdf is not a PDF" in done.stdout
    found = instance.run("search", "Who found a letter in a wedding dress?", "--dataset", "mill", "--limit", "1")
    assert "Hedda Moll" in found.stdout
    assert "paper-mill.pdf, page 1" in found.stdout
    assert instance.run("search", "x", "--dataset", "nowhere", check=False).returncode == 1
    assert '"DONE": 1' in instance.run("status", "--json").stdout
    assert instance.stop() == 0
