"""`pagemill index verify` and `repair`, on every index: what the rows say against what is there."""

from __future__ import annotations

import fcntl
import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from api.cli import app
from api.commands import index_migrate
from api.db.services.index_audit import Audit, AuditService
from api.db.services.index_judgement import Wrong
from api.db.services.index_repair import Repaired, repair
from api.db.services.role_service import RoleService
from common.errors import Conflict, NotFound, SettingsError
from common.task_state import DocumentRun
from rag.svr.indexer import Config, Indexer, is_indexer_there
from rag.utils import es_migration
from rag.utils.doc_index import ChunkRecord, Scope
from tests.elastic_indexes import elastic_index, elastic_settings
from tests.indexes import KINDS
from tests.rest_world import RestWorld, rest_world

pytestmark = pytest.mark.timeout(900)


@dataclass
class Site:
    world: RestWorld
    environ: dict[str, str]
    dataset_id: str
    document_id: str

    def audit(self) -> Audit:
        return AuditService(self.world.rows, self.world.index).run()

    def repair(self) -> Repaired:
        return repair(self.audit().findings, self.world.index, self.world.services.parsing)

    def command(self, *args: str) -> Result:
        data = str(self.world.services.settings.data_dir)
        return CliRunner().invoke(app, ["index", *args, "--data", data], env=self.environ, catch_exceptions=False)

    def found(self, question: str) -> list[dict[str, Any]]:
        asked = {"dataset_ids": [self.dataset_id], "question": question, "vector_similarity_weight": 0.0}
        hits: list[dict[str, Any]] = self.world.ok("POST", "/retrieval", json=asked)["chunks"]
        return hits

    def chunks(self) -> list[ChunkRecord]:
        return self.world.index.read_all(Scope(self.world.caller.tenant_id, self.dataset_id))[0]

    def add(self, **fields: Any) -> None:
        """A chunk that no claim has finished."""
        tenant_id = self.world.caller.tenant_id
        place = {"id": "stray", "tenant_id": tenant_id, "dataset_id": self.dataset_id, "document_id": self.document_id}
        numbers = {"generation": 1, "task_no": 0, "claim_no": 1, "ordinal": 0, "page": 1}
        made = ChunkRecord(**place | numbers | {"text": "stray", "terms": "stray", "token_count": 1} | fields)
        self.world.index.upsert([made], np.ones((1, 256), np.float32))


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search of these tests takes long."""
    monkeypatch.setattr(es_migration, "_LINGER_S", 0.2)


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A document of three pages with two chunks each."""
    with rest_world(tmp_path) as world:
        environ: dict[str, str] = {}
        if request.param == "embedded":
            yield _filled(world, environ)
            return
        settings = elastic_settings(request.getfixturevalue("elasticsearch_url"))
        environ |= {f"PAGEMILL_INDEX_{key}".upper(): str(getattr(settings, key)) for key in ("url", "prefix")}
        with elastic_index(settings) as index:
            world.index = index  # type: ignore[assignment]
            yield _filled(world, environ)


def _filled(world: RestWorld, environ: dict[str, str]) -> Site:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "three.pdf")
    world.ingest(dataset_id, document_id, *([f"page {n} one", f"page {n} two"] for n in range(3)))
    return Site(world, environ, dataset_id, document_id)


def test_nothing_is_wrong_where_nothing_was_done(site: Site) -> None:
    audit = site.audit()
    assert (audit.documents, audit.chunks, audit.findings) == (1, 6, [])
    told = site.command("verify")
    assert told.exit_code == 0
    assert "1 documents with 6 chunks in the index, as the rows say" in told.stdout
    assert site.command("repair").exit_code == 0


def test_lost_chunks_are_told_by_pages_and_their_document_is_parsed_again(site: Site) -> None:
    site.world.index.delete(Scope(site.world.caller.tenant_id, site.dataset_id, site.document_id, 1, (1, 1)))
    told = site.command("verify", "--json")
    assert told.exit_code == 1
    (finding,) = json.loads(told.stdout)["findings"]
    assert (finding["wrong"], finding["expected"], finding["found"]) == ("missing", 6, 4)
    assert (finding["ranges"], finding["repair"]) == ([[2, 2]], "parses 2-2 again")
    done = site.repair()
    assert (done.started, done.chunks, done.left) == ([site.document_id], 0, [])
    assert site.world.row(site.document_id).run == DocumentRun.RUNNING
    assert len(site.chunks()) == 4, "what is there is searched until the new generation is complete"
    assert site.repair().busy == [site.document_id]
    for task, page in zip(site.world.split(site.document_id, 3), range(3), strict=True):
        site.world.finish(task, [f"page {page} one", f"page {page} two"])
    site.world.flip(site.document_id)
    assert site.audit().findings == []


def test_an_index_that_is_lost_lacks_everything(site: Site) -> None:
    site.world.index.delete(Scope(site.world.caller.tenant_id, site.dataset_id))
    (finding,) = site.audit().findings
    assert (finding.wrong, finding.found, finding.ranges) == (Wrong.MISSING, 0, ((1, 1), (2, 2), (3, 3)))


def test_chunks_of_a_claim_that_never_finished_are_deleted(site: Site) -> None:
    site.add(claim_no=9)
    dry = site.command("repair", "--dry-run")
    assert dry.exit_code == 1
    assert "nothing was changed" in dry.stdout
    (finding,) = site.audit().findings
    assert (finding.wrong, finding.expected, finding.found, finding.to_parse) == (Wrong.EXTRA, 6, 7, False)
    done = site.command("repair", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["done"]["deleted_chunks"] == 1
    assert site.audit().findings == []
    assert "stray" not in {chunk.id for chunk in site.chunks()}


def test_more_chunks_than_a_finished_claim_wrote_need_a_parse(site: Site) -> None:
    site.add()
    (finding,) = site.audit().findings
    assert (finding.wrong, finding.doomed, finding.to_parse) == (Wrong.EXTRA, (), True)


def test_chunks_of_another_generation_are_deleted(site: Site) -> None:
    site.add(generation=7)
    (finding,) = site.audit().findings
    assert (finding.wrong, finding.expected, finding.found) == (Wrong.GENERATION, 0, 1)
    assert site.repair().chunks == 1
    assert site.audit().findings == []


def test_chunks_of_a_document_that_is_not_there_are_deleted(site: Site) -> None:
    site.add(document_id="nobody")
    (finding,) = site.audit().findings
    assert (finding.wrong, finding.document_id, finding.name) == (Wrong.EXTRA, "nobody", "")
    assert "(no such document)" in site.command("verify").stdout
    assert site.repair().chunks == 1
    assert site.audit().findings == []
    assert len(site.chunks()) == 6


def test_chunks_of_a_tenant_that_is_not_there_are_left_alone(site: Site) -> None:
    site.add(tenant_id="stranger")
    assert "the tenant is not in this database" in site.command("verify").stdout
    assert site.repair().left
    assert site.command("repair").exit_code == 1
    assert site.world.index.count(Scope("stranger", site.dataset_id)) == 1


def test_what_waits_for_the_sweeper_is_not_wrong(site: Site) -> None:
    world = site.world
    world.ingest(site.dataset_id, site.document_id, ["page one anew"], ["page two anew"])
    assert len(site.chunks()) == 8
    assert site.audit().findings == []
    world.ok("DELETE", f"/datasets/{site.dataset_id}/documents", json={"ids": [site.document_id]})
    assert len(site.chunks()) == 8
    assert site.audit().findings == []


def test_what_is_at_work_is_not_wrong(site: Site) -> None:
    world = site.world
    first = world.document(site.dataset_id, "first.pdf")
    for document_id in (first, site.document_id):
        world.ok("POST", f"/datasets/{site.dataset_id}/chunks", json={"document_ids": [document_id]})
        done, open_task = world.split(document_id, 2)
        world.finish(done, ["a finished page"])
        world.write(open_task, ["a page that is being written"])
    assert len(site.chunks()) == 10
    assert site.audit().findings == []


def test_a_migration_is_told_where_there_is_nothing_to_do(site: Site) -> None:
    told = site.command("migrate")
    assert told.exit_code == 0
    assert "nothing to migrate" in told.stdout


def test_one_migration_runs_at_a_time(site: Site) -> None:
    assert RoleService(site.world.rows).lead("index migration", "somebody else", 60_000)
    with pytest.raises(Conflict, match="another migration"):
        site.command("migrate")


@pytest.mark.parametrize("site", ["elasticsearch"], indirect=True)
def test_a_changed_mapping_is_migrated_and_told(site: Site) -> None:
    site.environ |= {"PAGEMILL_INDEX_SHARDS": "2", "PAGEMILL_INDEX_REPLICAS": "0"}
    assert "1 to be made anew" in site.command("migrate", "--dry-run").stdout
    told = site.command("migrate")
    assert "copying" in told.stdout
    assert "done: 1 made anew" in told.stdout
    assert "nothing to migrate" in site.command("migrate").stdout
    assert site.audit().findings == []


@pytest.mark.parametrize("site", ["embedded"], indirect=True)
def test_the_embedded_index_needs_its_indexer_to_be_made_anew(site: Site) -> None:
    folder = site.world.services.settings.index_dir
    with pytest.raises(NotFound, match="does not run"):
        site.command("migrate", "--force")
    assert not is_indexer_there(folder)
    with (folder / "indexer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_indexer_there(folder)


@pytest.mark.parametrize("site", ["embedded"], indirect=True)
def test_a_text_half_that_is_damaged_is_told_and_made_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = site.world.services.settings
    site.world.catch_up()
    assert site.found("page")
    for path in (settings.index_dir / "text").glob("*/*.term"):
        path.write_bytes(b"what a broken disk gives")
    assert "the text index can't be read" in site.audit().damage
    verified = site.command("verify")
    assert (verified.exit_code, "repair makes it anew" in verified.output) == (1, True)
    with pytest.raises(NotFound, match="does not run"):
        site.command("repair")
    config = Config(settings.index_dir, commit_s=0.01)
    stop = threading.Event()
    indexer = threading.Thread(target=lambda: Indexer(config).run(stop))
    indexer.start()
    monkeypatch.setattr(index_migrate, "is_indexer_there", lambda folder: True)
    try:
        repaired = site.command("repair", "--json")
    finally:
        stop.set()
        indexer.join()
    assert (repaired.exit_code, json.loads(repaired.output)["findings"]) == (0, [])
    assert site.audit().is_sound
    assert site.found("page")


@pytest.mark.parametrize("site", ["embedded"], indirect=True)
def test_a_text_half_that_lacks_chunks_is_told_once_it_is_not_behind(site: Site) -> None:
    site.world.catch_up()
    folder = site.world.services.settings.index_dir
    site.add(id="more", text="kept", terms="kept")
    assert site.world.index.damage() == "", "it is behind"
    site.world.catch_up()
    assert site.world.index.damage() == ""
    with closing(sqlite3.connect(folder / "chunks.db")) as link, link:
        link.execute("DELETE FROM chunk WHERE id = 'more'")
    assert re.fullmatch(r"the text index has \d+ chunks of \d+", site.world.index.damage())


@pytest.mark.parametrize("site", ["elasticsearch"], indirect=True)
def test_elasticsearch_needs_no_indexer(site: Site) -> None:
    with pytest.raises(SettingsError, match="needs no indexer"):
        CliRunner().invoke(app, ["indexer"], env=site.environ, catch_exceptions=False)
