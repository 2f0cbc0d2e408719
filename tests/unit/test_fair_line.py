"""Places in turns of tenants."""

from __future__ import annotations

import trio
import trio.testing

from rag.svr.fair_line import FairLine


async def _pass(line: FairLine, tenant_id: str, passed: list[str]) -> None:
    async with line.turn(tenant_id):
        passed.append(tenant_id)
        await trio.testing.wait_all_tasks_blocked()


async def test_a_single_one_passes_another_tenants_many() -> None:
    line, passed = FairLine(1), list[str]()
    async with trio.open_nursery() as nursery, line.turn("bulk"):
        for tenant_id in ("bulk", "bulk", "bulk", "bulk", "single", "other"):
            nursery.start_soon(_pass, line, tenant_id, passed)
            await trio.testing.wait_all_tasks_blocked()
    assert passed == ["bulk", "single", "other", "bulk", "bulk", "bulk"]


async def test_no_more_pass_at_once_than_there_are_places() -> None:
    line, inside, most = FairLine(2), 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with line.turn("t"):
            inside += 1
            most = max(most, inside)
            await trio.testing.wait_all_tasks_blocked()
            inside -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(9):
            nursery.start_soon(work)
    assert (inside, most) == (0, 2)


async def test_a_place_is_not_lost_with_one_that_is_cancelled() -> None:
    line, passed = FairLine(1), list[str]()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as waiting:
            async with line.turn("first"):
                nursery.start_soon(_pass, line, "later", passed)
                await trio.testing.wait_all_tasks_blocked()
                waiting.cancel()
                await trio.lowlevel.checkpoint_if_cancelled()
    assert passed == ["later"]


async def test_a_place_that_comes_together_with_a_cancel_goes_on() -> None:
    line, passed = FairLine(1), list[str]()
    scope = trio.CancelScope()

    async def is_cancelled() -> None:
        with scope:
            await _pass(line, "cancelled", passed)

    async with trio.open_nursery() as nursery, line.turn("first"):
        nursery.start_soon(is_cancelled)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(_pass, line, "next", passed)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
    assert passed[-1] == "next"
    async with line.turn("last"):
        passed.append("last")
    assert passed[-1] == "last"
