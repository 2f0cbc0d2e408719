"""Processes as the tests look at them: whose child one is goes by its parent's number alone.

psutil's own children() leaves out a child that seems older than its parent. It adds the time of the boot to both, and
that may jump by a second between the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def children(pid: int, name: str = "") -> list[psutil.Process]:
    """Those of this parent, dead ones that nobody has waited for too; with a name, those whose command line has it."""
    return _named((process for process, parent in _all() if parent == pid), name)


def descendants(pid: int, name: str = "") -> list[psutil.Process]:
    """Its children, their children, and so on."""
    below: dict[int, list[psutil.Process]] = {}
    for process, parent in _all():
        below.setdefault(parent, []).append(process)
    found: list[psutil.Process] = []
    parents = [pid]
    while parents:
        of_one = below.pop(parents.pop(), [])
        found += of_one
        parents += [process.pid for process in of_one]
    return _named(found, name)


def at_work_in(folder: Path) -> list[psutil.Process]:
    """Those that were told of this folder, or of something in it, on their command line."""
    return [p for p, _ in _all() if any(folder in (word, *word.parents) for word in map(Path, _words(p)))]


def command_line(process: psutil.Process) -> str:
    """Empty for one that is gone."""
    return " ".join(_words(process))


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if _is_alive(process)]


def kill_all(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def open_files(pid: int) -> set[Path]:
    """Of every kind; psutil knows of plain files only."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed while we looked
            found.add(link.readlink())
    return found


def _all() -> Iterator[tuple[psutil.Process, int]]:
    """Every process with its parent's number. One that goes while we look is left out."""
    for pid in psutil.pids():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            yield process, process.ppid()


def _named(processes: Iterable[psutil.Process], name: str) -> list[psutil.Process]:
    return [process for process in processes if name in command_line(process)]


def _words(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return process.cmdline()
    return []


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # it may go between the two questions
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
