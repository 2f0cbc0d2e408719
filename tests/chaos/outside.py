"""An executor that nobody supervises, like that of another host: it joins an instance, and is lost as a host is."""

from __future__ import annotations

import subprocess

import psutil

from common.ids import new_token
from common.settings import ROOT
from tests.acceptance.instance import PAGEMILL, Instance
from tests.processes import command_line, descendants, kill_all


class Outside:
    """Runs as soon as it is made; its log stands beside the instance's."""

    def __init__(self, instance: Instance, name: str) -> None:
        with instance.log.with_name(f"{name}.log").open("ab") as log:
            self._popen = subprocess.Popen(
                [*PAGEMILL, "executor", "--data", str(instance.data), "--name", name, "--boot", new_token()],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=instance.environ,
                cwd=ROOT,
                start_new_session=True,
            )
        self.process = psutil.Process(self._popen.pid)

    @property
    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def processes(self, name: str = "") -> list[psutil.Process]:
        """It and everything below it; with a name, those whose command line has it."""
        if not self.is_alive:
            return []
        found = [self.process, *descendants(self._popen.pid)]
        return [process for process in found if name in command_line(process)]

    def kill(self) -> None:
        """With everything below it, and it first: of what befalls its host it can say nothing."""
        kill_all(self.processes())
        self._popen.wait()


def owner_of(process: psutil.Process) -> str:
    """The name under which an executor owns its claims; empty for one that is gone."""
    words = command_line(process).split()
    if "--boot" not in words:
        return ""
    return f"{words[words.index('--name') + 1]}:{words[words.index('--boot') + 1]}"
