"""taskiq on Redis streams, acknowledged after the task has run."""

from __future__ import annotations

import os

from taskiq_redis import RedisStreamBroker

from bench.gate import Gate

gate = Gate.of_environment()
broker = RedisStreamBroker(url=os.environ["BENCH_QUEUE_URL"], consumer_id="0")


@broker.task(task_name="noop")
async def noop() -> None:
    await gate.pass_through_asyncio()
