"""The caller's team: GET, POST /team/members; DELETE /team/members/{id}; and the teams that the caller is in. Plain
HTTP statuses; what is refused is a problem (problems.py)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from flask import Blueprint, Response, jsonify
from pydantic import Field

from api.apps import problems
from api.apps.auth import caller, require_caller
from api.apps.openapi.operation import Surface, describe
from api.apps.parser_config import Strict
from api.apps.problem_bodies import problem_body
from api.apps.services import services
from api.apps.shapes.team import Members, Memberships
from api.apps.shapes.team import TeamMember as MemberShape
from api.db.services.team_service import Member
from api.db.services.webhook_deliveries import rfc3339

bp = Blueprint("team", __name__)
bp.before_request(require_caller)
problems.register(bp)

_TAG = "Team"
_PROBLEM = Surface.PROBLEM


class AddMember(Strict):
    email: Annotated[str, Field(min_length=3, max_length=255, description="Of somebody who is registered")]


@bp.get("/team/members")
@describe(
    _TAG,
    "The caller's team",
    note="The owner first. Members use the datasets whose `permission` is `team`.",
    surface=_PROBLEM,
    answer=Members,
)
def members() -> Response:
    owner = services().users.get(caller().tenant_id)
    found = [_member_json(one) for one in services().team.members(caller().tenant_id)]
    if owner is not None:
        first = Member(owner.id, owner.email, owner.nickname, owner.create_ms)
        found.insert(0, _member_json(first) | {"role": "owner"})
    return jsonify({"total": len(found), "members": found})


@bp.post("/team/members")
@describe(
    _TAG,
    "Add a member to the caller's team",
    surface=_PROBLEM,
    body=AddMember,
    answer=MemberShape,
    status=201,
    statuses=(404, 409),
    example={"email": "ann@example.com"},
)
def add() -> tuple[Response, int]:
    asked = problem_body(AddMember)
    return jsonify(_member_json(services().team.add(caller().tenant_id, asked.email))), HTTPStatus.CREATED


@bp.delete("/team/members/<user_id>")
@describe(_TAG, "Take a member out of the caller's team", surface=_PROBLEM, status=204)
def remove(user_id: str) -> tuple[str, int]:
    services().team.remove(caller().tenant_id, user_id)
    return "", HTTPStatus.NO_CONTENT


@bp.get("/team/memberships")
@describe(_TAG, "The teams that the caller is a member of", surface=_PROBLEM, answer=Memberships)
def memberships() -> Response:
    found = services().team.teams_of(caller().user_id)
    shown = [
        {"tenant_id": one.tenant_id, "email": one.email, "nickname": one.nickname, "since": rfc3339(one.since_ms)}
        for one in found
    ]
    return jsonify({"total": len(shown), "teams": shown})


@bp.delete("/team/memberships/<tenant_id>")
@describe(_TAG, "Leave a team", surface=_PROBLEM, status=204)
def leave(tenant_id: str) -> tuple[str, int]:
    services().team.remove(tenant_id, caller().user_id)
    return "", HTTPStatus.NO_CONTENT


def _member_json(one: Member) -> dict[str, Any]:
    return {
        "user_id": one.user_id,
        "email": one.email,
        "nickname": one.nickname,
        "role": "member",
        "since": rfc3339(one.since_ms),
    }
