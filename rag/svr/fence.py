"""Self-fencing: an executor that could not renew its claims stops its own work before their leases end, by a clock
that also runs while the machine sleeps."""

from __future__ import annotations

import time

from common.errors import LeaseLost

# Work is stopped this share of a lease before it ends: the time that stopping takes.
_MARGIN = 0.1


def steady_s() -> float:
    """Seconds on a clock that never jumps and counts suspend."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Fence:
    """Holds for a lease, counted from before the claim or renewal was *sent*."""

    def __init__(self, lease_s: float, sent_s: float) -> None:
        self._holds_s = lease_s * (1 - _MARGIN)
        self._since_s = sent_s

    def renewed(self, sent_s: float) -> None:
        self._since_s = max(self._since_s, sent_s)

    @property
    def remaining_s(self) -> float:
        return self._since_s + self._holds_s - steady_s()

    def check(self) -> None:
        """Raise LeaseLost where the lease may have ended. To be called just before every write elsewhere."""
        if self.remaining_s <= 0:
            raise LeaseLost("the lease ended before it could be renewed")
