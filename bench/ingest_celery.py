"""The ingest bench's steps as Celery tasks, acknowledged late. A file's ranges are sent by the task that opens it."""

from __future__ import annotations

import os
from typing import Any

import redis
from celery import Celery
from celery.signals import worker_process_init

from bench import ingest_steps

_ADDRESS = os.environ["BENCH_QUEUE_URL"]
DONE, WRITTEN, PLANNED = "bench:done", "bench:written", "bench:planned"
app = Celery("ingest", broker=_ADDRESS.replace("unix://", "redis+socket://"))
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    task_serializer="pickle",
    accept_content=["pickle"],
    broker_connection_retry_on_startup=True,
)
counters = redis.Redis.from_url(_ADDRESS)


@worker_process_init.connect
def _warm(**_: Any) -> None:
    ingest_steps.warm()


@app.task(name="prepare")
def prepare(data_dir: str, path: str) -> None:
    pieces = ingest_steps.prepare(data_dir, path)
    counters.incrby(PLANNED, len(pieces) - 1)  # the file itself was counted as one
    for piece in pieces:
        ingest.delay(tuple(piece))


@app.task(name="ingest")
def ingest(piece: tuple[Any, ...]) -> None:
    counters.rpush(WRITTEN, ingest_steps.ingest(ingest_steps.Piece(*piece)))
    counters.incr(DONE)
