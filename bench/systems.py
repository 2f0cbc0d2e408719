"""The systems that the queue bench compares: how a no-op job is submitted to each, and how its two workers are
started. The peers are configured as their documentation says for Redis; docs/benchmarks.md tells how."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import redis

from api.db.database import Rows, open_rows
from api.db.migrations import migrate
from api.db.models import Document, FileProfile, Knowledgebase
from api.db.services.parse_service import ParseService
from api.db.services.task_plan import ModelTraits
from api.instance import quiet_doorbell
from bench.noop_executor import settings_of
from common.ids import new_id, new_token
from common.task_state import TaskState
from rag.parser.blocks import PARSER_VERSION
from rag.utils.redis_conn import Queue

WORKERS = 2
# Ranges of a document in a backlog: a PDF of 1,200 pages.
RANGES = 100
_PAGES = 12


class System(ABC):
    """One queue. `submit` puts one job in; `submit_many` as many, as fast as its interface allows."""

    name: str
    batches = False
    # What part of a backlog it is given, so that the slowest do not take most of the time.
    share = 1.0
    # Whether a backlog stays out of Valkey while workers are there.
    bounded = False

    @abstractmethod
    def commands(self) -> list[list[str]]:
        """What to run with this Python so that two processes work."""

    @abstractmethod
    def submit(self) -> None: ...

    @abstractmethod
    def submit_many(self, count: int) -> None: ...

    def get_ready(self, single: int, many: int) -> None:  # noqa: B027
        """Make what `single` submits and `submit_many(many)` need beforehand, outside the measured time."""

    def is_drained(self) -> bool:
        """Whether everything that was submitted has ended, once all no-ops have run."""
        return True

    def close(self) -> None:  # noqa: B027
        """Let go of connections."""


class Pagemill(System):
    """Through the rows: a submit is the start of a document's parse, in one transaction, as the API does it. The
    documents' profiles are known, so their ranges are inserted at once: one for `submit`, 100 for each document of
    `submit_many`. Each document ends with one more task, its finish, which is not counted."""

    batches = True
    bounded = True

    def __init__(self, name: str, data_dir: Path, database_url: str, queue_url: str, slots: int) -> None:
        self.name = name
        self._args = ["--data", str(data_dir), "--database", database_url, "--queue", queue_url, "--slots", str(slots)]
        data_dir.mkdir()
        self._rows: Rows = open_rows(database_url)
        migrate(self._rows)
        settings = settings_of(data_dir, database_url, queue_url, slots)
        self._messages = Queue(queue_url, settings.queue.namespace)
        self._parsing = ParseService(self._rows, settings.tasks, ModelTraits(256), quiet_doorbell(self._messages))
        self._tenant_id = new_id()
        self._kb_id = new_id()
        self._rows.write(
            Knowledgebase.create, id=self._kb_id, tenant_id=self._tenant_id, created_by=self._tenant_id, name="bench",
            name_key="bench", embedding_model="m", parser_config={}, create_ms=1, update_ms=1,
        )  # fmt: skip
        self._single: list[str] = []
        self._many: list[str] = []

    def commands(self) -> list[list[str]]:
        return [["-m", "bench.noop_executor", f"e{n}", *self._args] for n in range(WORKERS)]

    def get_ready(self, single: int, many: int) -> None:
        self._single += self._documents(single, 1)
        self._many += self._documents(-(-many // RANGES), RANGES)

    def submit(self) -> None:
        self._parsing.start([self._single.pop()])

    def submit_many(self, count: int) -> None:
        wanted = -(-count // RANGES)
        doc_ids, self._many = self._many[:wanted], self._many[wanted:]
        self._parsing.start(doc_ids)

    def is_drained(self) -> bool:
        open_states = f"{int(TaskState.PENDING)}, {int(TaskState.RUNNING)}"
        return not self._rows.rows(f"SELECT 1 FROM task WHERE state IN ({open_states}) LIMIT 1")

    def close(self) -> None:
        self._rows.close_connection()
        self._messages.close()

    def _documents(self, count: int, ranges: int) -> list[str]:
        """Documents that were uploaded and whose files are known."""
        doc_ids = [new_id() for _ in range(count)]
        digests = [new_token() * 2 for _ in range(count)]
        profile = {"kind": "pdf", "unit": "page", "units": ranges * _PAGES}
        documents = [
            {
                "id": doc_id, "tenant_id": self._tenant_id, "kb_id": self._kb_id, "created_by": self._tenant_id,
                "name": f"{doc_id}.pdf", "name_key": doc_id, "file_digest": digest, "size_bytes": 1, "suffix": "pdf",
                "type": "pdf", "chunk_method": "naive", "parser_config": {}, "meta_fields": {}, "create_ms": 1,
                "update_ms": 1,
            }
            for doc_id, digest in zip(doc_ids, digests, strict=True)
        ]  # fmt: skip
        profiles = [
            {
                "tenant_id": self._tenant_id, "file_digest": digest, "suffix": "pdf", "parser_version": PARSER_VERSION,
                "profile": profile, "create_ms": 1,
            }
            for digest in digests
        ]  # fmt: skip
        for start in range(0, count, 50):
            self._rows.write(Document.insert_many(documents[start : start + 50]).execute)
            self._rows.write(FileProfile.insert_many(profiles[start : start + 50]).execute)
        return doc_ids


class Peer(System):
    """A library whose module in bench/ has a task `noop`. The module reads its addresses from the environment."""

    module: str

    def __init__(self) -> None:
        self._app = import_module(self.module)

    def submit_many(self, count: int) -> None:
        for _ in range(count):
            self.submit()


class CeleryPeer(Peer):
    name = "Celery"
    share = 0.25
    module = "bench.celery_app"

    def commands(self) -> list[list[str]]:
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING"]
        return [["-m", "celery", "-A", self.module, "worker", "--pool=prefork", f"--concurrency={WORKERS}", *quiet]]

    def submit(self) -> None:
        self._app.noop.delay()

    def close(self) -> None:
        self._app.app.close()


class DramatiqPeer(Peer):
    name = "Dramatiq"
    module = "bench.dramatiq_app"

    def commands(self) -> list[list[str]]:
        return [["-m", "dramatiq", self.module, "--processes", str(WORKERS), "--skip-logging"]]

    def submit(self) -> None:
        self._app.noop.send()

    def close(self) -> None:
        self._app.broker.close()


class TaskiqPeer(Peer):
    """Has no batch of its own, but its submits are coroutines: 100 at a time."""

    name = "taskiq"
    module = "bench.taskiq_app"
    batches = True

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._runner.run(self._app.broker.startup())

    def commands(self) -> list[list[str]]:
        quiet = ["--log-level", "WARNING"]
        return [["-m", "taskiq", "worker", f"{self.module}:broker", "--workers", str(WORKERS), *quiet]]

    def submit(self) -> None:
        self._runner.run(self._app.noop.kiq())

    def submit_many(self, count: int) -> None:
        self._runner.run(self._kick(count))

    async def _kick(self, count: int) -> None:
        for start in range(0, count, 100):
            await asyncio.gather(*(self._app.noop.kiq() for _ in range(min(100, count - start))))

    def close(self) -> None:
        self._runner.run(self._app.broker.shutdown())
        self._runner.close()


class HueyPeer(Peer):
    name = "Huey"
    module = "bench.huey_app"

    def commands(self) -> list[list[str]]:
        workers = ["-k", "process", "-w", str(WORKERS), "--no-periodic", "-q"]
        return [["-m", "huey.bin.huey_consumer", f"{self.module}.huey", *workers]]

    def submit(self) -> None:
        self._app.noop()


PEERS: Sequence[type[Peer]] = (CeleryPeer, DramatiqPeer, TaskiqPeer, HueyPeer)


def used_bytes(queue_url: str) -> int:
    """Memory that Valkey uses now."""
    with redis.Redis.from_url(queue_url) as client:
        return int(client.info("memory")["used_memory"])  # type: ignore[index]


def set_environment(queue_url: str, gate: Path) -> None:
    """What the peers' modules read, in the bench itself and in its workers."""
    os.environ["BENCH_QUEUE_URL"] = queue_url
    os.environ["BENCH_GATE"] = str(gate)
