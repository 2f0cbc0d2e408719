"""How many published tasks may stand in the streams: as few as keep the executors busy until the relay's next turn,
since whoever comes new stands behind them."""

from __future__ import annotations

import math

_LARGEST = 4096
# How long the relay may take for a turn without an executor running dry.
_AHEAD_S = 0.25
# What was taken longer ago than about this counts for little in the speed that is measured.
_MEMORY_S = 1.0
# Of slow tasks the executors have enough in hand: up to so many need not stand in the streams.
_MOST_IN_HAND = 30
# Speed is believed only as far as it was watched: a short burst into free slots is no speed.
_DOUBT_S = 0.2


class StreamWindow:
    """By how fast executors took tasks while there were enough of them. `in_hand` is how many they hold: executors
    that are kept waiting hold few, and then as many more stand ready for them."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._taken = 0.0
        self._watched_s = 0.0
        self._looked_s: float | None = None
        self.in_hand = 0

    def fit(self, taken: int, now_s: float, *, was_full: bool) -> int:
        """The size from now on. `taken` since the last call, before which the streams were full or not."""
        passed_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        kept = math.exp(-passed_s / _MEMORY_S)
        self._looked_s = now_s
        self._taken = self._taken * kept + taken
        self._watched_s = self._watched_s * kept + (passed_s if was_full else 0.0)
        speed = self._taken / (self._watched_s + _DOUBT_S)
        return max(self._least, min(int(speed * _AHEAD_S) - min(self.in_hand, _MOST_IN_HAND), _LARGEST))
