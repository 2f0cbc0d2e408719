"""Pause, resume, delete, replay and discard, on SQLite and on MariaDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.db.database import Rows
from api.db.models import Document, Knowledgebase, RangeResult, StaleChunks, Task, TaskEvent
from api.db.services.control_service import ControlService
from api.db.services.parse_service import Doorbell
from api.db.services.purge_service import PurgeService
from api.db.services.task_requests import Fail, GiveBack
from common.settings import IndexSettings, TaskSettings
from common.task_state import DocumentRun, TaskState, TaskType
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.folder_store import FolderStore
from rag.utils.redis_conn import Queue
from tests.sweeping import sweeper_of
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


@pytest.fixture
def control(world: World) -> ControlService:
    bell = Doorbell(lambda: world.rings.append("ring"), world.cancelled.extend)
    return ControlService(world.rows, TaskSettings(), bell)


def test_a_paused_document_starts_nothing_and_goes_on_where_it_was(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(3)
    (running,) = world.claim(ranges[0])
    assert control.pause([doc_id]) == [doc_id]
    assert control.pause([doc_id]) == []
    assert world.claim(*ranges[1:]) == []
    assert world.publishing.mark_next(10) == []
    assert world.finish(running) is TaskState.DONE
    assert control.resume([doc_id]) == [doc_id]
    assert control.resume([doc_id]) == []
    for task in world.claim(*ranges[1:]):
        world.finish(task)
    world.flip(doc_id)
    assert world.doc(doc_id).run == DocumentRun.DONE


def test_a_task_that_goes_back_while_its_document_is_paused_waits_too(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    control.pause([doc_id])
    assert world.tasks.apply([GiveBack(task.held, "retry", 0, "x", "again")]) == [TaskState.PAUSED]
    assert world.claim(*ranges) == []
    control.resume([doc_id])
    assert len(world.claim(*ranges)) == 1


def test_a_paused_document_can_be_stopped(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(2)
    control.pause([doc_id])
    assert world.parsing.stop([doc_id]) == [doc_id]
    assert {t.state for t in world.tasks_of(doc_id)} == {TaskState.DONE, TaskState.CANCEL}
    assert control.resume([doc_id]) == []
    assert world.claim(*ranges) == []


def test_a_failed_range_is_replayed_and_the_document_ends_well(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(2)
    first, second = world.claim(*ranges)
    world.finish(first, chunks=2)
    world.tasks.apply([Fail(second.held, "x", "bad")])
    world.flip(doc_id)
    assert world.doc(doc_id).run == DocumentRun.FAIL
    assert control.replay([second.id]) == [second.id]
    assert control.replay([second.id]) == []
    doc = world.doc(doc_id)
    assert (doc.run, doc.open_tasks, doc.failed_tasks, doc.error_message) == (DocumentRun.RUNNING, 1, 0, "")
    (again,) = world.claim(second.id)
    assert (again.attempt, again.losses, again.claim_no) == (0, 0, 2)
    world.finish(again, chunks=3)
    world.flip(doc_id)
    doc = world.doc(doc_id)
    assert (doc.run, doc.chunk_count, doc.done_tasks) == (DocumentRun.DONE, 5, 2)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 5


def test_a_failed_reparse_can_be_replayed_while_its_chunks_are_kept(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges), chunks=1)
    world.flip(doc_id)
    world.parsing.start([doc_id])
    first, second = world.claim_all(doc_id)
    world.finish(first, chunks=2)
    world.tasks.apply([Fail(second.held, "x", "bad")])
    world.flip(doc_id)
    assert world.doc(doc_id).active_generation == 1
    world.rows.execute("UPDATE stale_chunks SET sweep_ms = 0 WHERE generation = 2 AND task_no = -1")
    assert control.replay([second.id]) == []  # may be swept any moment
    world.rows.execute(
        f"UPDATE stale_chunks SET sweep_ms = {world.rows.now_ms} + 60000 WHERE generation = 2 AND task_no = -1"
    )
    assert control.replay([second.id]) == [second.id]
    world.finish(*world.claim(second.id), chunks=2)
    world.flip(doc_id)
    assert (world.doc(doc_id).active_generation, world.doc(doc_id).run) == (2, DocumentRun.DONE)
    assert StaleChunks.select().where((StaleChunks.generation == 2) & (StaleChunks.task_no == -1)).count() == 0


def test_a_replay_of_an_old_generation_is_refused(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([Fail(task.held, "x", "bad")])
    world.flip(doc_id)
    world.parsing.start([doc_id])
    assert control.replay([task.id]) == []
    assert Task.get_by_id(task.id).state == TaskState.FAIL


def test_failed_tasks_are_discarded_and_others_are_not(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(2)
    first, second = world.claim(*ranges)
    world.tasks.apply([Fail(first.held, "x", "bad")])
    assert control.discard([first.id, second.id, "unknown"]) == 1
    assert [t.id for t in world.tasks_of(doc_id) if t.task_type == TaskType.RANGE] == [second.id]
    assert TaskEvent.select().where(TaskEvent.task_id == first.id).count() == 0


def test_a_deleted_document_is_gone_at_once_and_its_work_ends(world: World, control: ControlService) -> None:
    doc_id, ranges = world.started(2)
    first, second = world.claim(*ranges)
    world.finish(first, chunks=4)
    assert RangeResult.select().where(RangeResult.doc_id == doc_id).count() == 1
    assert control.delete([doc_id]) == [doc_id]
    assert control.delete([doc_id]) == []
    assert world.cancelled == [second.id]
    assert world.finish(second) is None
    doc = world.doc(doc_id)
    assert (doc.active_generation, doc.run, doc.name_key) == (0, DocumentRun.CANCEL, None)
    assert RangeResult.select().where(RangeResult.doc_id == doc_id).count() == 0
    assert world.parsing.start([doc_id]) == []


def test_a_deleted_dataset_takes_its_documents_along(world: World, control: ControlService) -> None:
    docs = [world.started(1)[0] for _ in range(3)]
    assert control.delete_dataset(world.kb_id) is True
    assert control.delete_dataset(world.kb_id) is False
    assert all(world.doc(doc_id).deleted_ms for doc_id in docs)
    assert all(world.claim_all(doc_id) == [] for doc_id in docs)


def test_a_delete_whose_server_died_is_gone_on_with(
    world: World, control: ControlService, queue: Queue, tmp_path: Path
) -> None:
    docs = [world.started(1)[0] for _ in range(3)]
    world.rows.write(control._close_dataset, world.kb_id)  # and then its process is killed
    assert [world.doc(doc_id).deleted_ms for doc_id in docs] == [0, 0, 0]
    index = EmbeddedIndex(tmp_path / "index", IndexSettings())
    sweeper = sweeper_of(world.rows, queue, index, FolderStore(tmp_path / "files"), tmp_path / "pictures")
    assert sweeper.run_once() is True
    assert all(world.doc(doc_id).deleted_ms for doc_id in docs)
    assert all(world.claim_all(doc_id) == [] for doc_id in docs)
    assert control.go_on_deleting() == 0
    index.close()


def test_the_sweeper_leaves_nothing_of_what_was_deleted(
    world: World, control: ControlService, queue: Queue, tmp_path: Path
) -> None:
    index = EmbeddedIndex(tmp_path / "index", IndexSettings())
    store = FolderStore(tmp_path / "files")
    upload = store.begin_upload()
    upload.write(b"bytes")
    stored = upload.keep(world.tenant_id)
    doc_id, ranges = world.started(1)
    Document.update(file_digest=stored.digest).where(Document.id == doc_id).execute()
    world.finish(*world.claim(*ranges))
    world.flip(doc_id)
    control.delete_dataset(world.kb_id)
    # As if lease and request timeout were over.
    sweeper = sweeper_of(world.rows, queue, index, store, tmp_path / "pictures", lease_s=-61.0)
    picture = tmp_path / "pictures" / stored.digest / "1-400.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"a page")
    with store.local_path(world.tenant_id, stored.digest) as path:
        import os

        os.utime(path, (1, 1))
    assert sweeper.run_once() is True
    assert sweeper.run_once() is True
    assert not picture.exists()
    for model in (Document, Task, TaskEvent, StaleChunks, RangeResult, Knowledgebase):
        assert model.select().count() == 0, model
    assert not path.exists()
    index.close()


def test_a_file_that_is_used_elsewhere_or_was_just_uploaded_stays(world: World, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "files")
    upload = store.begin_upload()
    upload.write(b"bytes")
    stored = upload.keep(world.tenant_id)
    assert store.delete_unused(world.tenant_id, stored.digest, 3600) is False
    assert store.delete_unused(world.tenant_id, stored.digest, 0) is True
    assert store.delete_unused(world.tenant_id, stored.digest, 0) is False


def test_ended_tasks_and_their_timelines_are_removed_in_their_time(world: World) -> None:
    doc_id, ranges = world.started(2)
    first, _ = world.claim(*ranges)
    world.finish(first)
    purging = PurgeService(world.rows, TaskSettings())
    assert purging.remove_ended() == 0
    world.rows.execute("UPDATE task_event SET at_ms = 1")
    assert purging.remove_ended() > 0
    states = {t.state for t in world.tasks_of(doc_id)}
    assert states == {TaskState.RUNNING}
    assert TaskEvent.select().count() == 0
