"""What befalls an installation in the storm. Each blow is survived without anybody's help; those that last run on
while the next ones fall."""

from __future__ import annotations

import fcntl
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil
import pymysql
import redis

from rag.utils.embedded_folder import Folder
from rag.utils.redis_conn import Queue
from tests.acceptance.instance import EXECUTOR, PARSER
from tests.chaos.outside import owner_of
from tests.chaos.site import Site, now_ms

# Longer than a lease: what a sleeper held is somebody else's when it wakes.
_SLEEP_S = 17.0
_REFUSAL_S = 20.0


@dataclass(frozen=True)
class Kill:
    """An executor that was killed, and the (task id, claim number) pairs it held."""

    at_ms: int
    whole_host: bool
    held: tuple[tuple[str, int], ...]


class Blows:
    def __init__(self, site: Site, dice: random.Random) -> None:
        self._site = site
        self._dice = dice
        self._lasting: list[threading.Thread] = []
        self._sleeping = threading.Lock()
        self.dealt: Counter[str] = Counter()
        self.kills: list[Kill] = []
        self._often: dict[str, tuple[int, Callable[[], None]]] = {
            "executor killed": (5, self._kill_executor),
            "parser killed": (5, lambda: self._kill_named(PARSER)),
            "executor of another host lost": (2, self._lose_host),
            "executor drained": (2, lambda: self._signal(self._site.executors(), signal.SIGTERM)),
            "executor stopped past its lease": (1, lambda: self._last(self._stop_executor)),
            "indexer killed": (2, lambda: self._kill_named("api.cli indexer")),
            "web server killed": (1, lambda: self._kill_named("api.cli server")),
            "Valkey flushed": (2, self._flush),
            "Valkey killed": (1, lambda: self._restart_valkey(empty=False)),
            "Valkey restarted empty": (1, lambda: self._restart_valkey(empty=True)),
        }

    def deal_one(self) -> None:
        names = list(self._often)
        (name,) = self._dice.choices(names, [self._often[n][0] for n in names])
        self._deal(name, self._often[name][1])

    def restart_database(self) -> None:
        killed = self._dice.random() < 0.5
        self._deal(f"MariaDB {'killed' if killed else 'restarted'}", lambda: self._restart_database(killed))

    def refuse_index_writes(self) -> None:
        self._deal("index refused writes for 20 s", lambda: self._last(self._hold_index))

    def settle(self) -> None:
        """Wait for what lasts, and give the other host its executor back."""
        for thread in self._lasting:
            thread.join()
        if self._site.outside is None:
            self._site.start_outside()

    def _deal(self, name: str, blow: Callable[[], None]) -> None:
        blow()
        self.dealt[name] += 1

    def _last(self, blow: Callable[[], None]) -> None:
        thread = threading.Thread(target=blow, daemon=True)
        thread.start()
        self._lasting.append(thread)

    def _kill_named(self, name: str) -> None:
        self._signal(self._site.processes(name), signal.SIGKILL)

    def _signal(self, victims: list[psutil.Process], signum: int) -> None:
        if victims:
            with suppress(psutil.NoSuchProcess):
                self._dice.choice(victims).send_signal(signum)

    def _kill_executor(self) -> None:
        victims = self._site.instance.children(EXECUTOR)
        if victims:
            victim = self._dice.choice(victims)
            with suppress(psutil.NoSuchProcess):
                held = self._held_by(owner_of(victim))
                self.kills.append(Kill(now_ms(), False, held))
                victim.kill()

    def _lose_host(self) -> None:
        victim = self._site.outside
        if victim is None:
            self._site.start_outside()
            return
        held = self._held_by(owner_of(victim))
        self.kills.append(Kill(now_ms(), True, held))
        self._site.kill_outside()

    def _held_by(self, owner: str) -> tuple[tuple[str, int], ...]:
        try:
            return tuple(self._site.query("SELECT id, claim_no FROM task WHERE state = 1 AND owner = %s", owner))
        except pymysql.Error:
            return ()  # it can't be asked now; this kill is not measured

    def _stop_executor(self) -> None:
        """One at a time: somebody must be left to take over."""
        if not self._sleeping.acquire(blocking=False):
            return
        try:
            self._stop_one()
        finally:
            self._sleeping.release()

    def _stop_one(self) -> None:
        victims = self._site.executors()
        if victims:
            victim = self._dice.choice(victims)
            with suppress(psutil.NoSuchProcess):
                victim.suspend()
                time.sleep(_SLEEP_S)
                victim.resume()

    def _flush(self) -> None:
        queue = Queue(self._site.valkey.url)
        with suppress(redis.RedisError):
            queue._redis.flushall()
        queue.close()

    def _restart_valkey(self, *, empty: bool) -> None:
        self._site.valkey.kill()
        time.sleep(self._dice.uniform(0.1, 2.0))
        if empty:
            self._site.valkey.forget_all()
        self._site.valkey.start()

    def _restart_database(self, killed: bool) -> None:
        if killed:
            self._site.mariadb.kill()
        else:
            self._site.mariadb.stop()
        time.sleep(self._dice.uniform(0.1, 3.0))
        self._site.mariadb.start()

    def _hold_index(self) -> None:
        """Nobody can write to the index while its lock is held by another."""
        with Folder(self._site.instance.data / "index").write_lock.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            time.sleep(_REFUSAL_S)
            fcntl.flock(lock, fcntl.LOCK_UN)
