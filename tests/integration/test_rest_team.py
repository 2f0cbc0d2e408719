"""Teams: whom an owner adds, what a member uses of the owner's datasets, and that it ends with the membership."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.apps.browser_sessions import COOKIE
from api.db.database import Rows
from api.db.models import Document
from api.db.services.account_service import Caller
from api.db.services.team_service import TeamService
from common.errors import Conflict, NotFound
from tests.rest_jobs import problem
from tests.rest_world import RestWorld, new_caller, rest_world

TEXT = "The Danube flows through Vienna."


@dataclass
class TeamWorld:
    """Ursula owns a dataset that is shared and one that is not; Mia is a member of her team."""

    world: RestWorld
    mia: Caller
    key: str
    shared: str
    document_id: str
    private: str

    def ok(self, method: str, path: str, **kwargs: Any) -> Any:
        return self.world.ok(method, path, key=self.key, **kwargs)

    def refused(self, method: str, path: str, **kwargs: Any) -> str:
        return self.world.refused(method, path, key=self.key, **kwargs)[1].lower()


@pytest.fixture
def team(tmp_path: Path) -> Iterator[TeamWorld]:
    with rest_world(tmp_path) as world:
        mia = new_caller(world.rows, "mia")
        key = world.services.accounts.create_token(mia, "k")
        shared, private = world.dataset("shared", permission="team"), world.dataset("private")
        document_id = world.document(shared)
        world.ingest(shared, document_id, [TEXT])
        assert world.call("POST", "/team/members", json={"email": "mia"}).status_code == 201
        yield TeamWorld(world, mia, key, shared, document_id, private)


def test_members_are_added_listed_and_removed(team: TeamWorld) -> None:
    world = team.world
    told = world.call("GET", "/team/members").get_json()
    assert [(one["nickname"], one["role"]) for one in told["members"]] == [("Ursula", "owner"), ("mia", "member")]
    teams = world.call("GET", "/team/memberships", key=team.key).get_json()["teams"]
    assert [(one["tenant_id"], one["nickname"]) for one in teams] == [(world.caller.tenant_id, "Ursula")]
    problem(world.call("POST", "/team/members", json={"email": "mia"}), 409, "conflict")
    problem(world.call("POST", "/team/members", json={"email": "Ursula"}), 404, "not_found")
    for body, field in (({}, "email"), ({"email": 7}, "email"), ({"email": "mia", "role": "owner"}, "role")):
        told = problem(world.call("POST", "/team/members", json=body), 422, "invalid_field")
        assert field in [one["field"] for one in told["errors"]]
    assert world.call("DELETE", f"/team/members/{team.mia.user_id}").status_code == 204
    problem(world.call("DELETE", f"/team/members/{team.mia.user_id}"), 404, "not_found")
    assert team.refused("GET", f"/datasets/{team.shared}").startswith("user")
    assert world.ok("GET", "/datasets", key=team.key) == []


def test_a_member_leaves(team: TeamWorld) -> None:
    world = team.world
    assert world.call("DELETE", f"/team/memberships/{world.caller.tenant_id}", key=team.key).status_code == 204
    assert world.call("GET", "/team/memberships", key=team.key).get_json()["teams"] == []
    problem(world.call("DELETE", f"/team/memberships/{world.caller.tenant_id}", key=team.key), 404, "not_found")


def test_shared_datasets_are_listed_with_ones_own(team: TeamWorld) -> None:
    own = team.ok("POST", "/datasets", json={"name": "own"})["id"]
    listed = team.world.call("GET", "/datasets", key=team.key).get_json()
    assert {one["id"] for one in listed["data"]} == {own, team.shared}
    assert listed["total_datasets"] == 2
    assert [one["id"] for one in team.ok("GET", "/datasets?name=shared")] == [team.shared]
    assert [one["id"] for one in team.ok("GET", f"/datasets?ids={team.shared},{own}&desc=false")] == [team.shared, own]
    assert "lacks permission" in team.refused("GET", f"/datasets?id={team.private}")
    assert "lacks permission" in team.refused("GET", "/datasets?name=private")
    owners = team.ok("GET", "/datasets?type=filter")["filter"]["owner"]
    assert {(one["label"], one["count"]) for one in owners} == {("mia", 1), ("Ursula", 1)}
    ext = f'{{"owner_ids": ["{team.world.caller.tenant_id}"]}}'
    assert [one["id"] for one in team.ok("GET", "/datasets", query_string={"ext": ext})] == [team.shared]
    assert len(team.world.ok("GET", "/datasets")) == 2, "a member's own are not the owner's"


def test_a_member_uploads_parses_and_edits_for_the_owner(team: TeamWorld) -> None:
    world, path = team.world, f"/datasets/{team.shared}/documents"
    data = {"file": (io.BytesIO(b"more"), "b.txt")}
    (made,) = team.ok("POST", path, data=data)
    row = Document.get_by_id(made["id"])
    assert (row.tenant_id, row.created_by) == (world.caller.tenant_id, team.mia.user_id)
    team.ok("POST", f"/datasets/{team.shared}/chunks", json={"document_ids": [made["id"]]})
    for task in world.split(made["id"], 1):
        world.finish(task, ["Bread is baked with flour."])
    world.flip(made["id"])
    assert world.shown(team.shared, made["id"])["run"] == "DONE"
    (chunk,) = team.ok("GET", f"{path}/{made['id']}/chunks")["chunks"]
    team.ok("PUT", f"{path}/{made['id']}/chunks/{chunk['id']}", json={"important_keywords": ["oven"]})
    (seen,) = world.ok("GET", f"{path}/{made['id']}/chunks")["chunks"]
    assert seen["important_keywords"] == ["oven"]
    with world.call("GET", f"{path}/{made['id']}", key=team.key) as file:
        assert file.get_data() == b"more"
    team.ok("DELETE", path, json={"ids": [made["id"]]})
    assert [one["id"] for one in world.ok("GET", path)["docs"]] == [team.document_id]


def test_a_question_goes_to_ones_own_and_to_shared_datasets_at_once(team: TeamWorld) -> None:
    world = team.world
    own = team.ok("POST", "/datasets", json={"name": "own"})["id"]
    (made,) = team.ok("POST", f"/datasets/{own}/documents", data={"file": (io.BytesIO(b"x"), "own.txt")})
    team.ok("POST", f"/datasets/{own}/chunks", json={"document_ids": [made["id"]]})
    for task in world.split(made["id"], 1):
        world.finish(task, ["The Danube ends in the Black Sea."])
    world.flip(made["id"])
    asked = {"dataset_ids": [own, team.shared], "question": "Danube", "similarity_threshold": 0.0}
    found = team.ok("POST", "/retrieval", json=asked | {"include_metadata": True})
    assert {chunk["dataset_id"] for chunk in found["chunks"]} == {own, team.shared}
    scores = [chunk["similarity"] for chunk in found["chunks"]]
    assert scores == sorted(scores, reverse=True)
    only = team.ok("POST", "/retrieval", json=asked | {"document_ids": [team.document_id]})
    assert {chunk["document_id"] for chunk in only["chunks"]} == {team.document_id}
    assert len(team.ok("POST", "/datasets/search", json=asked)["chunks"]) == 2
    assert "one owner" in team.refused("POST", "/retrieval", json=asked | {"explain": True})
    assert "don't own" in team.refused("POST", "/retrieval", json=asked | {"dataset_ids": [team.private]})


def test_jobs_of_a_shared_dataset_are_the_members_to_follow(team: TeamWorld) -> None:
    world = team.world
    data = {"file": (io.BytesIO(b"x"), "job.txt"), "dataset_id": team.shared}
    made = world.call("POST", "/jobs", key=team.key, data=data)
    assert made.status_code == 202, made.get_json()
    job_id = made.get_json()["job_id"]
    assert world.call("GET", f"/jobs/{job_id}", key=team.key).status_code == 200
    assert world.call("GET", f"/jobs/{job_id}").get_json()["dataset_id"] == team.shared
    listed = world.call("GET", f"/jobs?dataset_id={team.shared}", key=team.key).get_json()
    assert {job["job_id"] for job in listed["jobs"]} == {job_id, team.document_id}
    assert world.call("GET", "/jobs", key=team.key).get_json()["total"] == 0
    assert world.call("GET", f"/jobs/{job_id}/events", key=team.key).status_code == 501, "no socket here, but let in"
    assert world.call("DELETE", f"/jobs/{job_id}", key=team.key).get_json()["status"] == "cancelled"


def test_what_is_the_owners_stays_the_owners(team: TeamWorld) -> None:
    path = f"/datasets/{team.shared}"
    assert "lacks permission" in team.refused("PUT", path, json={"permission": "me"})
    assert "lacks permission" in team.refused("DELETE", "/datasets", json={"ids": [team.shared]})
    assert team.ok("DELETE", "/datasets", json={"delete_all": True}) == {"success_count": 0}
    document = f"{path}/documents/{team.document_id}"
    assert "don't own the dataset" in team.refused("PUT", document, json={"name": "z.txt"})
    assert len(team.world.ok("GET", "/datasets")) == 2


def test_a_dataset_that_is_shared_no_more_is_gone_at_once(team: TeamWorld) -> None:
    team.ok("GET", f"/datasets/{team.shared}/documents")
    team.world.ok("PUT", f"/datasets/{team.shared}", json={"permission": "me"})
    assert "don't own the dataset" in team.refused("GET", f"/datasets/{team.shared}/documents")
    problem(team.world.call("GET", f"/jobs/{team.document_id}", key=team.key), 404, "not_found")


def test_membership_in_rows_of_both_kinds(rows: Rows) -> None:
    owner, member, service = new_caller(rows, "olga"), new_caller(rows, "mia"), TeamService(rows)
    assert service.add(owner.tenant_id, "MIA").user_id == member.user_id
    with pytest.raises(Conflict):
        service.add(owner.tenant_id, "mia")
    with pytest.raises(Conflict):
        service.add(owner.tenant_id, "olga")
    assert service.tenants_of(member.user_id) == (owner.tenant_id,)
    assert service.shared_datasets(member.user_id, ["0" * 32]) == {}
    assert service.shared_documents(member.user_id, ["0" * 32] * 1200) == {}
    service.remove(owner.tenant_id, member.user_id)
    with pytest.raises(NotFound):
        service.remove(owner.tenant_id, member.user_id)
    assert service.members(owner.tenant_id) == []


def test_pages_show_what_is_shared_and_nothing_else(team: TeamWorld) -> None:
    client = team.world.client.application.test_client()
    client.set_cookie(COOKIE, team.world.services.sessions.begin(team.mia))
    first = client.get("/").get_data(as_text=True)
    assert f"/datasets/{team.shared}" in first and team.private not in first
    for path in ("", f"/documents/{team.document_id}"):
        assert client.get(f"/datasets/{team.shared}{path}").status_code == 200
    rows = client.get(f"/ui/datasets/{team.shared}/documents").get_json()
    assert rows["total"] == 1
    assert client.get(f"/datasets/{team.private}").status_code == 404
    assert client.get(f"/datasets/{team.shared}/settings").status_code == 404
    assert client.get(f"/ui/datasets/{team.private}/documents").status_code == 404
