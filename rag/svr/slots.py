"""How many more tasks an executor may take: as many as it can have in work, but of those that have not been read yet
only as many as keep its parsers busy for a moment. What stands in its line can't be taken by an executor that has
nothing to do, nor be passed by a task that is more urgent."""

from __future__ import annotations

import math
import threading

# How much work may stand in line for one parser: a claim takes a few hundredths of a second. Of tasks that take ten
# times as long none does; of shorter ones there is always one.
_AHEAD_S = 0.15
_ROUNDED_UP = 0.9
# Of the seconds that a task takes at the parser: how much the last one counts.
_NEWEST = 0.25
# Threads that wait for a slot: of the streams in turn, and of the express stream.
_READERS = 2


class Slots:
    """Thread-safe. Free ones are below 0 when it took some that it had no slot for.

    While it is held, nobody is let in; `is_quiet` then tells that both readers have noticed and no slot is taken."""

    def __init__(self, count: int, parsers: int = 1) -> None:
        self.count = count
        self._parsers = parsers
        self._free = count
        self._in_line = 0
        # 0 until a task has been read.
        self._read_s = 0.0
        self._closed = False
        self._held = False
        self._waiting = 0
        self._changed = threading.Condition()

    @property
    def used(self) -> int:
        return self.count - self._free

    def wait_free(self, beyond: int = 0) -> int:
        """How many may be taken now, and `beyond` so many more; 0 once closed."""
        with self._changed:
            while (self._held or self._room + beyond <= 0) and not self._closed:
                self._waiting += 1
                self._changed.wait()
                self._waiting -= 1
            return 0 if self._closed else self._room + beyond

    def hold(self, held: bool) -> None:
        """Let nobody take a slot from now on, or let them again."""
        with self._changed:
            self._held = held
            self._changed.notify_all()

    @property
    def is_held(self) -> bool:
        return self._held

    @property
    def is_quiet(self) -> bool:
        with self._changed:
            return self._held and self._waiting == _READERS and self._free == self.count

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self, count: int) -> None:
        with self._changed:
            self._free -= count
            self._in_line += count

    def left_line(self) -> None:
        """A task that holds a slot does not stand in line any more: it has been read, or needs no parser."""
        with self._changed:
            self._in_line -= 1
            self._changed.notify_all()

    def was_read(self, seconds: float) -> None:
        """A task was at its parser for so long."""
        with self._changed:
            self._read_s += (seconds - self._read_s) * (_NEWEST if self._read_s else 1.0)
            self._changed.notify_all()

    def give(self, count: int, *, in_line: bool = True) -> None:
        """Slots of tasks that stood in line until now, or had left it."""
        with self._changed:
            self._free += count
            self._in_line -= count if in_line else 0
            self._changed.notify_all()

    @property
    def _room(self) -> int:
        most = math.floor(_AHEAD_S / self._read_s + _ROUNDED_UP) if self._read_s else self.count
        return min(self._free, self._parsers * (1 + most) - self._in_line)
