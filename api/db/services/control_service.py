"""What people do to documents that are on their way or there: pause, resume, delete; and to failed tasks: replay,
discard. Each is one transaction a slice; the loser of a race changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from api.db.database import Rows
from api.db.services import dataset_counts, document_sql, task_control, task_sql, webhook_outcomes
from api.db.services.parse_service import Doorbell
from api.db.services.task_sql import DocumentKey
from common.settings import TaskSettings
from common.task_state import (
    DOCUMENT_TRANSITIONS,
    TASK_TRANSITIONS,
    DocumentRun,
    TaskState,
    TaskType,
    from_states_sql,
    set_state_sql,
)

_AT_ONCE = 50


class ControlService:
    def __init__(self, rows: Rows, settings: TaskSettings, bell: Doorbell) -> None:
        self._rows = rows
        self._keep_ms = int(settings.reuse_keep_h * 3_600_000)
        self._bell = bell

    def pause(self, doc_ids: Sequence[str]) -> list[str]:
        """Let no waiting task of these documents start; what is at work goes on. Returns the ids of those paused."""
        return [doc_id for doc_id in doc_ids if self._rows.write(self._pause, doc_id, [])]

    def resume(self, doc_ids: Sequence[str]) -> list[str]:
        resumed = [doc_id for doc_id in doc_ids if self._rows.write(self._resume, doc_id, [])]
        if resumed:
            self._rows.after_commit(self._bell.tasks_waiting)
        return resumed

    def delete(self, doc_ids: Sequence[str]) -> list[str]:
        """End the work of these documents and make them unseen at once; the sweeper removes what they leave behind.
        Returns the ids of those that were there."""
        deleted: dict[str, list[str]] = {}
        for start in range(0, len(doc_ids), _AT_ONCE):
            self._rows.write(self._delete_all, doc_ids[start : start + _AT_ONCE], deleted)
        tasks = [task_id for at_work in deleted.values() for task_id in at_work]
        if tasks:
            self._rows.after_commit(partial(self._bell.tasks_cancelled, tasks))
        return list(deleted)

    def delete_dataset(self, dataset_id: str) -> bool:
        """Delete a dataset with all its documents. False where it was gone already."""
        if not self._rows.write(self._close_dataset, dataset_id):
            return False
        while doc_ids := self._rows.read(self._documents_of, dataset_id):
            self.delete(doc_ids)
        return True

    def go_on_deleting(self) -> int:
        """Delete some documents of datasets that are deleted: whoever was at it may have died. Returns how many."""
        doc_ids = self._rows.read(self._documents_left)
        return len(self.delete(doc_ids))

    def replay(self, task_ids: Sequence[str]) -> list[str]:
        """Let failed tasks run again, their counters at zero. Refused for those of an older generation, and for those
        whose siblings' chunks are already swept. Returns the ids of those that run again."""
        replayed = [task_id for task_id in task_ids if self._rows.write(self._replay, task_id, [])]
        if replayed:
            self._rows.after_commit(self._bell.tasks_waiting)
        return replayed

    def discard(self, task_ids: Sequence[str]) -> int:
        """Forget failed tasks and their timelines; their documents stay failed. Returns how many."""
        return sum(self._rows.write(self._discard, task_id) for task_id in task_ids)

    def _pause(self, doc_id: str, before: list[str]) -> bool:
        """`before` names what an earlier try of this transaction did; where that may have committed, and it is so, only
        the reply was lost."""
        task_sql.lock_documents(self._rows, [doc_id])
        won = self._rows.execute(
            f"UPDATE document SET paused = 1, update_ms = {self._rows.now_ms}"
            f" WHERE id = ? AND paused = 0 AND run = {int(DocumentRun.RUNNING)}",
            (doc_id,),
        ).rowcount
        if won:
            task_control.move_tasks(self._rows, doc_id, "pause")
            before.append(doc_id)
        return bool(won) or (self._rows.is_in_doubt and bool(before) and document_sql.is_paused(self._rows, doc_id))

    def _resume(self, doc_id: str, before: list[str]) -> bool:
        task_sql.lock_documents(self._rows, [doc_id])
        won = self._rows.execute(
            f"UPDATE document SET paused = 0, update_ms = {self._rows.now_ms} WHERE id = ? AND paused = 1", (doc_id,)
        ).rowcount
        if won:
            task_control.move_tasks(self._rows, doc_id, "resume")
            before.append(doc_id)
        return bool(won) or (self._rows.is_in_doubt and bool(before) and not document_sql.is_paused(self._rows, doc_id))

    def _delete_all(self, doc_ids: Sequence[str], deleted: dict[str, list[str]]) -> None:
        """`deleted`, with the ids of each document's tasks that were at work, outlives a transaction that is run again:
        where that may have committed, what is not there any more was deleted by it."""
        task_sql.lock_documents(self._rows, doc_ids)
        for doc_id in doc_ids:
            if self._delete(doc_id):
                deleted[doc_id] = task_control.cancel_open_tasks(self._rows, doc_id, 0)
                self._forget_results(doc_id)
            elif not self._rows.is_in_doubt:
                deleted.pop(doc_id, None)

    def _delete(self, doc_id: str) -> bool:
        """A tombstone, without a name so that the name is free again."""
        running, cancel = int(DocumentRun.RUNNING), int(DOCUMENT_TRANSITIONS["cancel"].target)
        found = self._rows.rows(
            "SELECT run, kb_id, size_bytes, chunk_count, token_count FROM document WHERE id = ? AND deleted_ms = 0",
            (doc_id,),
        )
        if not found:
            return False
        self._rows.execute(
            f"UPDATE document SET deleted_ms = {self._rows.now_ms}, name_key = NULL, active_generation = 0, paused = 0,"
            f" run = CASE WHEN run = {running} THEN {cancel} ELSE run END, open_tasks = 0 WHERE id = ?",
            (doc_id,),
        )
        run, kb_id, size_bytes, chunks, tokens = found[0]
        if run == running:
            webhook_outcomes.record(self._rows, doc_id, webhook_outcomes.Outcome.CANCELLED)
        dataset_counts.add(self._rows, kb_id, documents=-1, size_bytes=-size_bytes, chunks=-chunks, tokens=-tokens)
        return True

    def _forget_results(self, doc_id: str) -> None:
        """After a delete nothing of the document is a source for reuse, and all of it is to be swept at once."""
        self._rows.execute("DELETE FROM range_result WHERE doc_id = ?", (doc_id,))
        key = document_sql.key_of(self._rows, doc_id)
        task_sql.mark_stale(self._rows, DocumentKey(key.tenant_id, key.kb_id, doc_id, 0, 0))
        self._rows.execute("UPDATE stale_chunks SET sweep_ms = 0 WHERE doc_id = ?", (doc_id,))

    def _close_dataset(self, dataset_id: str) -> bool:
        won = self._rows.execute(
            f"UPDATE knowledgebase SET deleted_ms = {self._rows.now_ms}, name_key = NULL"
            f" WHERE id = ? AND deleted_ms = 0",
            (dataset_id,),
        ).rowcount
        return bool(won)

    def _documents_of(self, dataset_id: str) -> list[str]:
        found = self._rows.rows(
            "SELECT id FROM document WHERE kb_id = ? AND deleted_ms = 0 ORDER BY id LIMIT 500", (dataset_id,)
        )
        return [str(row[0]) for row in found]

    def _documents_left(self) -> list[str]:
        found = self._rows.rows(
            "SELECT d.id FROM knowledgebase k JOIN document d ON d.kb_id = k.id"
            " WHERE k.deleted_ms > 0 AND d.deleted_ms = 0 ORDER BY d.id LIMIT 500"
        )
        return [str(row[0]) for row in found]

    def _replay(self, task_id: str, before: list[str]) -> bool:
        found = self._rows.rows("SELECT doc_id, generation, task_type FROM task WHERE id = ?", (task_id,))
        if not found:
            return False
        doc_id, generation, task_type = found[0]
        task_sql.lock_documents(self._rows, [doc_id])
        task = task_sql.lock_tasks(self._rows, [task_id]).get(task_id)
        if task is None or task.state != TaskState.FAIL:
            return task is not None and self._rows.is_in_doubt and bool(before)
        if not self._reopen(doc_id, generation, is_finish=task_type == TaskType.FINISH):
            return False
        transition = TASK_TRANSITIONS["replay"]
        self._rows.execute(
            f"UPDATE task SET {set_state_sql(transition)}, attempt = 0, losses = 0, waiting_since = 0, end_at = 0,"
            f" run_after = {self._rows.now_ms}, published_at = 0, claim_token = '', owner = '', error_code = '',"
            f" error_message = '' WHERE id = ? AND {from_states_sql(transition)}",
            (task_id,),
        )
        task_control.pause_if_paused(self._rows, doc_id)
        task_sql.add_events(self._rows, [task.event("replay")])
        before.append(task_id)
        return True

    def _reopen(self, doc_id: str, generation: int, *, is_finish: bool) -> bool:
        """Make room for one task that runs again. Only in the current generation, while its chunks are there."""
        transition = DOCUMENT_TRANSITIONS["replay"]
        searched_or_kept = (
            "(active_generation = generation OR EXISTS (SELECT 1 FROM stale_chunks s WHERE s.doc_id = document.id"
            f" AND s.generation = document.generation AND s.task_no = {task_sql.WHOLE_GENERATION}"
            f" AND s.sweep_ms > {self._rows.now_ms}))"
        )
        closed = document_sql.RANGES_CLOSED
        one_more = f"CASE WHEN open_tasks = {closed} THEN 1 ELSE open_tasks + 1 END"
        opened = str(closed) if is_finish else one_more
        counted = "failed_tasks" if is_finish else "failed_tasks - 1"
        # A finish runs again only when every range is done; a range also beside siblings that are still at work.
        alone = " AND failed_tasks = 0" if is_finish else ""
        siblings = "1 = 0" if is_finish else f"(run = {int(DocumentRun.RUNNING)} AND open_tasks > 0)"
        won = self._rows.execute(
            f"UPDATE document SET {set_state_sql(transition, 'run')}, open_tasks = {opened}, failed_tasks = {counted},"
            f" error_code = '', error_message = '', end_ms = 0, update_ms = {self._rows.now_ms}"
            f" WHERE id = ? AND generation = ? AND deleted_ms = 0 AND {searched_or_kept}"
            f" AND ({from_states_sql(transition, 'run')}{alone} OR {siblings})",
            (doc_id, generation),
        ).rowcount
        if won:
            self._rows.execute(
                f"DELETE FROM stale_chunks WHERE doc_id = ? AND generation = ?"
                f" AND task_no = {task_sql.WHOLE_GENERATION}",
                (doc_id, generation),
            )
        return bool(won)

    def _discard(self, task_id: str) -> int:
        gone = self._rows.execute(
            f"DELETE FROM task WHERE id = ? AND state = {int(TaskState.FAIL)}", (task_id,)
        ).rowcount
        if gone:
            self._rows.execute("DELETE FROM task_event WHERE task_id = ?", (task_id,))
        return int(gone)
