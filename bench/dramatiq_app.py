"""Dramatiq with its Redis broker and its default middleware."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.gate import Gate

gate = Gate.of_environment()
broker = RedisBroker(url=os.environ["BENCH_QUEUE_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor
def noop() -> None:
    gate.pass_through()
