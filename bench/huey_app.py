"""Huey on Redis lists. It has no acknowledgement: a crash loses what was taken."""

from __future__ import annotations

import os

from huey import RedisHuey

from bench.gate import Gate

gate = Gate.of_environment()
huey = RedisHuey("bench", url=os.environ["BENCH_QUEUE_URL"], results=False)


@huey.task(name="noop")
def noop() -> None:
    gate.pass_through()
