"""Users, for administrators: GET and POST /admin/users; PATCH /admin/users/<id>; POST /admin/users/<id>/password."""

from __future__ import annotations

import re
import secrets
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from flask import Response, jsonify
from pydantic import Field

from api.apps.admin import FORBIDDEN, TAG, admin_blueprint
from api.apps.auth import caller
from api.apps.openapi.operation import Surface, describe
from api.apps.problems import FieldError, Problem, wrong_fields
from api.apps.requests import Loose, loose_body, text
from api.apps.services import services
from api.apps.shapes.admin import NewPassword, NewUser
from api.apps.shapes.admin import UserFacts as UserShape
from api.db.services.user_admin import UserFacts
from common.errors import NotFound

bp = admin_blueprint("admin_users")

_EMAIL = re.compile(r"[\w._+-]+@(?:[\w-]+\.)+[\w-]{2,}")
_MAX_EMAIL = 255
_MAX_NICKNAME = 128
_LEAST_PASSWORD = 8
_MAX_PASSWORD = 1024
_PROBLEM = Surface.PROBLEM


class CreateUser(Loose):
    email: Annotated[str, Field(max_length=_MAX_EMAIL)]
    nickname: Annotated[str, Field(max_length=_MAX_NICKNAME)] = ""
    password: Annotated[str, Field(min_length=_LEAST_PASSWORD, max_length=_MAX_PASSWORD)] | None = None
    is_superuser: bool = False


class ChangeUser(Loose):
    """One of them, or both."""

    is_active: bool | None = None
    is_superuser: bool | None = None


@bp.get("/admin/users")
@describe(TAG, "List users", surface=_PROBLEM, answer=list[UserShape], statuses=FORBIDDEN)
def users() -> Response:
    return jsonify([asdict(user) for user in services().user_admin.all()])


@bp.post("/admin/users")
@describe(
    TAG,
    "Make a user",
    note="Without a password one is made up, and told in this answer only.",
    surface=_PROBLEM,
    body=CreateUser,
    answer=NewUser,
    status=201,
    statuses=(*FORBIDDEN, 409),
    example={"email": "ann@example.com", "nickname": "Ann"},
)
def create() -> tuple[Response, int]:
    """With a password of their own, or, where none is given, a made-up one in the answer: it can't be read again."""
    body = loose_body()
    email = _text(body, "email", _MAX_EMAIL)
    if not _EMAIL.fullmatch(email):
        raise wrong_fields(FieldError("email", "this is no e-mail address"))
    if services().users.by_email(email) is not None:
        raise Problem(HTTPStatus.CONFLICT, "conflict", f"{email} is registered already")
    given = _text(body, "password", _MAX_PASSWORD) if body.get("password") else ""
    if given and len(given) < _LEAST_PASSWORD:
        raise wrong_fields(FieldError("password", f"it needs at least {_LEAST_PASSWORD} characters"))
    nickname = email.partition("@")[0][:_MAX_NICKNAME]
    if body.get("nickname"):
        nickname = _text(body, "nickname", _MAX_NICKNAME)
    password = given or secrets.token_urlsafe(12)
    user_id = services().accounts.create_user(email, nickname, password, is_superuser=_flag(body, "is_superuser"))
    made = {} if given else {"password": password}
    return jsonify(asdict(_user(user_id)) | made), HTTPStatus.CREATED


@bp.patch("/admin/users/<user_id>")
@describe(TAG, "Change what a user may do", surface=_PROBLEM, body=ChangeUser, answer=UserShape, statuses=FORBIDDEN)
def change(user_id: str) -> Response:
    """`is_active`, `is_superuser`, or both."""
    body = loose_body()
    if not {"is_active", "is_superuser"} & set(body):
        raise wrong_fields(FieldError("is_active", "this or `is_superuser` is to be given"))
    if "is_active" in body:
        services().user_admin.set_active(user_id, _flag(body, "is_active"), caller().user_id)
    if "is_superuser" in body:
        services().user_admin.set_superuser(user_id, _flag(body, "is_superuser"), caller().user_id)
    return jsonify(asdict(_user(user_id)))


@bp.post("/admin/users/<user_id>/password")
@describe(TAG, "Give a user a new password", surface=_PROBLEM, answer=NewPassword, statuses=FORBIDDEN)
def reset_password(user_id: str) -> Response:
    """A new password, in the answer only; the user is signed out everywhere."""
    return jsonify({"password": services().accounts.reset_password(user_id)})


def _user(user_id: str) -> UserFacts:
    found = next((user for user in services().user_admin.all() if user.id == user_id), None)
    if found is None:
        raise NotFound("there is no such user")
    return found


def _flag(body: dict[str, Any], key: str) -> bool:
    given = body.get(key, False)
    if not isinstance(given, bool):
        raise wrong_fields(FieldError(key, "true or false"))
    return given


def _text(body: dict[str, Any], key: str, most: int) -> str:
    given = body.get(key)
    if not isinstance(given, str) or not given.strip() or len(given) > most:
        raise wrong_fields(FieldError(key, f"it needs 1 to {most} characters"))
    return text(given).strip() if key != "password" else text(given)
