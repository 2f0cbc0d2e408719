"""The sender of webhooks: one executor tells all outcomes that are due. A delivery is marked when it was answered: a
sender that dies in between leaves it due, and it is sent again under the same id.

Turns are short, so that the role never runs out during one. A webhook that failed rests a while: the others do not
wait for it again and again."""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from api.db.services.role_service import RoleService
from api.db.services.webhook_deliveries import DueDelivery, WebhookDeliveries
from common.errors import SettingsError
from common.settings import WebhookSettings
from rag.svr.fence import steady_s
from rag.svr.role_loop import Leadership, Role, run_in_role
from rag.utils.webhook_http import Answer, Message, WebhookClient

log = logging.getLogger(__name__)
ROLE = "webhooks"
_LEAD_S = 60.0
# How long a turn begins new deliveries. With the last ones' time it stays below half of the role's.
_TURN_S = 5.0
_LONGEST_TIMEOUT_S = _LEAD_S / 2 - 2 * _TURN_S
_MOST_EACH = 20
_REMOVE_EVERY_S = 60.0
_JITTER = 0.25


@dataclass(frozen=True)
class SenderConfig:
    settings: WebhookSettings
    holder: str

    def __post_init__(self) -> None:
        if self.settings.timeout_s > _LONGEST_TIMEOUT_S:
            given = f"webhooks.timeout_s = {self.settings.timeout_s:g}"
            raise SettingsError(f"{given}: allowed: at most {_LONGEST_TIMEOUT_S:g}")


class WebhookSender:
    def __init__(self, config: SenderConfig, roles: RoleService, deliveries: WebhookDeliveries) -> None:
        self._settings = config.settings
        self._leadership = Leadership(Role(ROLE, config.holder, _LEAD_S), roles)
        self._deliveries = deliveries
        self._client = WebhookClient(config.settings)
        self._stop = threading.Event()
        self._answered: deque[tuple[DueDelivery, Answer]] = deque()
        self._rest_until_s: dict[str, float] = {}
        self._remove_due_s = 0.0

    def run(self, stop: threading.Event) -> None:
        self._stop = stop
        run_in_role(self._leadership, self._turn, stop)

    def run_once(self) -> bool:
        """One turn. False where another executor does this."""
        leads = self._leadership.hold()
        self._turn(leads)
        return leads

    def _turn(self, leads: bool) -> None:
        self._mark_answered()  # what an outage of the rows left unmarked must not be sent again, by whomever
        if not leads:
            return
        self._send(self._due())
        if steady_s() >= self._remove_due_s:
            self._remove_due_s = steady_s() + _REMOVE_EVERY_S
            self._deliveries.remove_old(int(self._settings.keep_h * 3_600_000))

    def _due(self) -> deque[deque[DueDelivery]]:
        now_s = steady_s()
        self._rest_until_s = {one: until_s for one, until_s in self._rest_until_s.items() if until_s > now_s}
        lines = self._deliveries.due(_MOST_EACH)
        return deque(line for line in lines if line[0].told.webhook_id not in self._rest_until_s)

    def _send(self, lines: deque[deque[DueDelivery]]) -> None:
        """One delivery of a webhook at a time, in their order; several webhooks at once."""
        if not lines:
            return
        until_s, most = steady_s() + _TURN_S, self._settings.max_concurrent
        under_way: dict[Future[Answer], deque[DueDelivery]] = {}
        with ThreadPoolExecutor(min(most, len(lines))) as pool:
            while True:
                while lines and len(under_way) < most and steady_s() < until_s and not self._stop.is_set():
                    line = lines.popleft()
                    under_way[pool.submit(self._post, line.popleft())] = line
                if not under_way:
                    return
                for ended in wait(under_way, return_when=FIRST_COMPLETED).done:
                    line = under_way.pop(ended)
                    if ended.result().is_accepted and line:
                        lines.append(line)
                self._mark_answered()

    def _post(self, due: DueDelivery) -> Answer:
        """In a thread of its own. The answer is kept here first: an outage of the rows must not lose it."""
        answer = self._client.post(_message(due))
        self._answered.append((due, answer))
        return answer

    def _mark_answered(self) -> None:
        """Marked at once, and only then forgotten here."""
        while self._answered:
            due, answer = self._answered[0]
            if answer.is_accepted:
                self._deliveries.mark_delivered(due, answer.status)
            else:
                self._mark_failed(due, answer)
            self._answered.popleft()

    def _mark_failed(self, due: DueDelivery, answer: Answer) -> None:
        waits_s = self._settings.waits_s
        wait_ms = retry_wait_ms(waits_s, due.attempts, random.random())
        self._deliveries.mark_failed(due, answer.status, answer.problem, wait_ms)
        self._rest_until_s[due.told.webhook_id] = steady_s() + waits_s[0]
        if wait_ms is None:
            log.warning("webhook %s: delivery %s is given up: %s", due.told.webhook_id, due.told.id, answer.problem)


def retry_wait_ms(waits_s: Sequence[float], attempts: int, jitter: float) -> int | None:
    """Until the next try after so many before this one; None after the last. `jitter` is a random number in 0..1, and
    adds up to a quarter: not all that failed together come back together."""
    if attempts >= len(waits_s):
        return None
    return int(waits_s[attempts] * 1000 * (1 + jitter * _JITTER))


def _message(due: DueDelivery) -> Message:
    return Message(due.url, due.secret, due.told.id, str(due.told.outcome), due.told.body())
