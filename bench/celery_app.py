"""Celery, as safe as it gets on Redis: acks_late. No results are kept."""

from __future__ import annotations

import os

from celery import Celery

from bench.gate import Gate

gate = Gate.of_environment()
app = Celery("bench", broker=os.environ["BENCH_QUEUE_URL"].replace("unix://", "redis+socket://"))
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=int(os.environ.get("BENCH_PREFETCH", "64")),
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop() -> None:
    gate.pass_through()
