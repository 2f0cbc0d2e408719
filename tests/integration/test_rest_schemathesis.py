"""Requests made up from the description, right and wrong ones, on every operation: no error inside, no status, header
or body that is not described. PAGEMILL_EXAMPLES makes more of them than CI has time for, PAGEMILL_SEED others."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

from api.db.models import Document, User
from common.settings import ServerSettings
from tests.rest_world import RestWorld, rest_world

EXAMPLES = int(os.environ.get("PAGEMILL_EXAMPLES", "5"))
SEED = int(os.environ.get("PAGEMILL_SEED", "20261117"))
pytestmark = [pytest.mark.timeout(600 + 60 * EXAMPLES), pytest.mark.filterwarnings("ignore")]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ID_LISTS = ("dataset_ids", "document_ids", "doc_ids", "chunk_ids", "ids")


@dataclass
class Place:
    """Things that are there, in place of some of the ids that are made up; new ones where a request deleted them."""

    world: RestWorld
    ids: dict[str, str]

    def stand(self) -> None:
        document = Document.get_or_none(Document.id == self.ids.get("document_id", ""))
        if document is not None and not document.deleted_ms and document.chunk_count:
            return
        dataset_id = self.world.dataset()
        document_id = self.world.document(dataset_id)
        self.world.ingest(dataset_id, document_id, ["The Danube flows through Vienna."])
        chunks = self.world.ok("GET", f"/datasets/{dataset_id}/documents/{document_id}/chunks")["chunks"]
        self.ids = {
            "dataset_id": dataset_id,
            "document_id": document_id,
            "job_id": document_id,
            "log_id": document_id,
            "chunk_id": chunks[0]["id"],
        }

    def fill(self, case: Any) -> None:
        for name in case.path_parameters or {}:
            if name in self.ids:
                case.path_parameters[name] = self.ids[name]
        for part in (case.body, case.query):
            if isinstance(part, dict):
                for name in ID_LISTS:
                    if name in part:
                        part[name] = [self.ids[_single(name)]]


def _single(name: str) -> str:
    return {"doc_ids": "document_id", "ids": "document_id"}.get(name, name.removesuffix("s"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    server = ServerSettings(failed_logins_per_minute=0)
    with rest_world(tmp_path_factory.mktemp("schemathesis"), server) as world:
        world.rows.write(User.update(is_superuser=1).where(User.id == world.caller.user_id).execute)
        yield Place(world, {})


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=str)
def test_every_operation_answers_as_described(place: Place, mode: Any) -> None:
    app = place.world.client.application
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)
    found, asked, calls = [], 0, [0]
    for result in schema.get_all_operations():
        operation = result.ok()
        try:
            _ask(place, operation, mode, calls)
        except Unsatisfiable:
            continue  # it takes nothing that could be wrong
        except FailureGroup as group:
            found.append(f"{operation.label}: {[str(one)[:1500] for one in group.exceptions]}")
        except Exception as exc:  # noqa: BLE001 - whatever it is, the others are asked as well
            found.append(f"{operation.label}: {exc!r}"[:3000])
        asked += 1
    assert not found, "\n\n".join(found)
    assert asked > 120 and calls[0] > asked


def _ask(place: Place, operation: Any, mode: Any, calls: list[int]) -> None:
    is_live = operation.definition.raw["tags"] == ["Events"]  # streams have no end, and need a socket

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_real=st.booleans())
    def ask(case: Any, is_real: bool) -> None:
        if is_real and not is_live:
            place.stand()
            place.fill(case)
            place.world.catch_up()
        answer = case.call(headers={"Authorization": f"Bearer {place.world.key}"})
        case.validate_response(answer, checks=CHECKS)
        calls[0] += 1

    ask()
