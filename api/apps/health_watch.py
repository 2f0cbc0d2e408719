"""The health of the parts with a limit in time: a part that hangs is told as such and keeps nobody waiting.

Each part has a thread of its own, so that one that does not come back hides only itself. However many look, a part is
asked about every two seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from api.apps.health import PartState, check_part
from api.apps.kept import Kept
from api.apps.limited import Limited, Silent
from common.errors import PagemillError

LIMIT_S = 2.0
_KEEP_S = 2.0


class HealthWatch:
    def __init__(
        self, parts: Mapping[str, Callable[[], None]], limit_s: float = LIMIT_S, keep_s: float = _KEEP_S
    ) -> None:
        self._probes = {
            part: Limited(f"health of {part}", partial(check_part, part, check), limit_s, PagemillError)
            for part, check in parts.items()
        }
        self._states = Kept(self._ask, keep_s, grows=False)

    def look(self) -> list[PartState]:
        """In at most the limit, whatever the parts do."""
        return self._states.get()

    def _ask(self) -> list[PartState]:
        for probe in self._probes.values():
            probe.begin()
        return [_state(part, probe) for part, probe in self._probes.items()]


def _state(part: str, probe: Limited[PartState]) -> PartState:
    try:
        return probe.get()
    except Silent as exc:
        return PartState(part, str(exc), exc.waited_s * 1000)
