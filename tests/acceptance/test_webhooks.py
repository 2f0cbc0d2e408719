"""The product tells a receiver how jobs ended, also after the executor that sends was killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.following import begin
from tests.acceptance.instance import EXECUTOR, running_instance
from tests.servers.webhook_receiver import webhook_receiver
from tests.waiting import wait_until
from tests.webhook_world import is_signed, told

pytestmark = pytest.mark.timeout(600)


def test_a_receiver_hears_how_jobs_ended(short_dir: Path, tmp_path: Path) -> None:
    environ = {"PAGEMILL_WEBHOOKS_ALLOW_PRIVATE": "true", "PAGEMILL_EXECUTOR_PROCESSES": "1"}
    good, bad = tmp_path / "good.txt", tmp_path / "bad.pdf"
    good.write_text("The heron stood in the reeds.")
    bad.write_bytes(b"%PDF-1.7 and nothing more")
    with webhook_receiver() as receiver, running_instance(short_dir / "hooks", **environ) as instance:
        made = instance.call("POST", "/webhooks", {"url": receiver.url})
        first, second = begin(instance, good)["job_id"], begin(instance, bad)["job_id"]
        wait_until(lambda: len(receiver.received) == 2, what="both outcomes")
        assert sorted(told(receiver)) == sorted([(first, "done"), (second, "failed")])
        assert all(is_signed(one, made["secret"]) for one in receiver.received)
        (executor,) = instance.children(EXECUTOR)
        executor.send_signal(signal.SIGKILL)
        third = begin(instance, good)["job_id"]
        wait_until(lambda: (third, "done") in told(receiver), what="the outcome after the kill")
        log = instance.call("GET", f"/webhooks/{made['webhook_id']}/deliveries")
        assert {one["delivery_id"] for one in log["deliveries"]} == {one.delivery_id for one in receiver.received}
        assert instance.stop() == 0
        assert made["secret"] not in instance.output()
