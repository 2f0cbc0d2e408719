"""Commands for the tests of the command line, and a browser for those of the web UI."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from api import cli
from tests.acceptance.browser import browser, console, open_page, site

__all__ = ["browser", "console", "open_page", "run", "site"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command in this process: (exit code, stdout, stderr). An error that is not told in a line is raised."""

    def run_one(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pagemill", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run_one
