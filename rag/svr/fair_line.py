"""A limited number of places, taken in turns: whoever waits alone for a tenant is not behind another tenant's many."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class FairLine:
    """Trio only. Within a tenant first come, first served."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[trio.Event]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        await self._enter(tenant_id)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, tenant_id: str) -> None:
        if self._free:
            self._free -= 1
            return
        called = trio.Event()
        self._waiting.setdefault(tenant_id, deque()).append(called)
        try:
            await called.wait()
        except trio.Cancelled:
            if called.is_set():
                self._leave()  # the place came together with the cancel: on to the next
            else:
                self._forget(tenant_id, called)
            raise

    def _leave(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        tenant_id, line = next(iter(self._waiting.items()))
        line.popleft().set()
        if line:
            self._waiting.move_to_end(tenant_id)
        else:
            del self._waiting[tenant_id]

    def _forget(self, tenant_id: str, called: trio.Event) -> None:
        line = self._waiting[tenant_id]
        line.remove(called)
        if not line:
            del self._waiting[tenant_id]
