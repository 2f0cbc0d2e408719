"""An executor whose tasks do nothing: the real one with all its loops, but for `run_one`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import trio

from api.db.services.task_requests import Ending, FinishDocument, FinishRange, Written
from bench.gate import Gate
from common.ids import new_token
from common.settings import Settings, load
from common.task_state import TaskType
from rag.svr import running
from rag.svr.data_folder import DataFolder
from rag.svr.task_executor import run_executor
from rag.svr.worker import Work, WorkerParts

_LOOK_S = 0.01


def settings_of(data_dir: Path, database_url: str, queue_url: str, slots: int) -> Settings:
    """Each data folder has its own keys in Valkey: two of them may share one."""
    overrides = {
        "database.url": database_url,
        "queue.url": queue_url,
        "queue.namespace": data_dir.name,
        "executor.max_concurrent_tasks": slots,
    }
    return load(data_dir, environ={}, overrides=overrides).settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--slots", type=int, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    settings = settings_of(options.data, options.database, options.queue, options.slots)
    DataFolder(settings).make()
    running.run_one = Nothing(Gate.of_environment()).run_one
    run_executor(settings, options.name, new_token())


class Nothing:
    """Takes the place of rag.svr.worker.run_one: a task ends as soon as it may pass the gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._looking = trio.Lock()

    async def run_one(self, work: Work, parts: WorkerParts) -> Ending:
        task = work.task
        if task.task_type is TaskType.FINISH:
            return FinishDocument(task.held, task.index_seq)
        self._gate.arrive()
        if not self._gate.is_open:
            await self._wait_open()
        self._gate.count()
        return FinishRange(task.held, Written())

    async def _wait_open(self) -> None:
        """One task looks, the others wait for it."""
        async with self._looking:
            while not self._gate.is_open:
                await trio.sleep(_LOOK_S)


if __name__ == "__main__":
    main()
