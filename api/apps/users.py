"""Signing in and out, and the user's own account. A login's token comes in the header `Authorization` of the answer,
and is taken wherever an API key is."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from flask import Blueprint, Response, g, jsonify
from pydantic import Field

from api.apps.auth import caller, given_key, require_caller
from api.apps.envelope import ARGUMENT, AUTHENTICATION, FORBIDDEN, OPERATING, ApiError, expect_full, full
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import Loose, loose_body, shown, text
from api.apps.services import services
from api.apps.shapes.system import User
from api.apps.views import date_text
from api.db.services.account_service import Caller
from api.db.services.user_service import UserView
from common.errors import InvalidInput, Unauthorized

# Without a token.
open_bp = Blueprint("sign_in", __name__)
open_bp.before_request(expect_full)
bp = Blueprint("users", __name__)
bp.before_request(expect_full)
bp.before_request(require_caller)

_EMAIL = re.compile(r"[\w._+-]+@(?:[\w-]+\.)+[\w-]{2,}")
_MAX_EMAIL = 255
_MAX_NICKNAME = 128
_MAX_PASSWORD = 1024
_TAG = "Users"
_Email = Annotated[str, Field(max_length=_MAX_EMAIL)]
_Nickname = Annotated[str, Field(min_length=1, max_length=_MAX_NICKNAME)]
_Password = Annotated[str, Field(min_length=1, max_length=_MAX_PASSWORD)]


class Login(Loose):
    email: _Email
    password: _Password


class Registration(Login):
    nickname: _Nickname


class Profile(Loose):
    nickname: _Nickname


@open_bp.post("/auth/login")
@describe(
    _TAG,
    "Sign in",
    note="The token comes in the answer's header `Authorization`, and is taken wherever a key is.",
    surface=Surface.FULL,
    body=Login,
    answer=User,
)
def login() -> Response:
    body = loose_body()
    if not body:
        raise ApiError(AUTHENTICATION, "Unauthorized!")
    email, password = _text(body, "email"), _text(body, "password", _MAX_PASSWORD)
    user = services().users.by_email(email)
    if user is None:
        raise ApiError(AUTHENTICATION, f"Email: {shown(email)} is not registered!")
    if not user.is_active:
        raise ApiError(FORBIDDEN, "This account has been disabled, please contact the administrator!")
    try:
        signed_in = services().accounts.sign_in(email, password)
    except Unauthorized as exc:
        raise ApiError(AUTHENTICATION, "Email and password do not match!") from exc
    answer = jsonify({"code": 0, "message": "Welcome back!", "data": _user_json(user)})
    answer.headers["Authorization"] = services().sessions.begin(signed_in)
    return answer


@open_bp.post("/users")
@describe(
    _TAG,
    "Register a user",
    note="With an administrator's key; closed to everybody else.",
    surface=Surface.FULL,
    body=Registration,
    answer=User,
    statuses=(401,),
)
def register() -> Response:
    """For an administrator, who is the one to say who may come in; closed to everybody else."""
    body = loose_body()
    missing = [key for key in ("nickname", "email", "password") if not body.get(key)]
    if missing:
        raise ApiError(ARGUMENT, f"required argument are missing: {', '.join(missing)}; ")
    if len(_text(body, "nickname")) > _MAX_NICKNAME:
        raise ApiError(ARGUMENT, f"`nickname` has at most {_MAX_NICKNAME} characters")
    email = _text(body, "email")
    if not _EMAIL.fullmatch(email):
        raise ApiError(OPERATING, f"Invalid email address: {shown(email)}!")
    if given_key():
        require_caller()
    if "caller" not in g or not caller().is_superuser:
        raise ApiError(OPERATING, "User registration is disabled!")
    if services().users.by_email(email) is not None:
        raise ApiError(OPERATING, f"Email: {shown(email)} has already registered!")
    nickname = text(body["nickname"])
    user_id = services().accounts.create_user(email, nickname, _text(body, "password", _MAX_PASSWORD))
    user = services().users.get(user_id)
    assert user is not None, "it was made just now"
    return full(_user_json(user))


@bp.post("/auth/logout")
@describe(_TAG, "Sign out", surface=Surface.FULL, answer=Literal[True])
def logout() -> Response:
    services().sessions.end(given_key())
    return full(True)


@bp.get("/users/me")
@describe(_TAG, "The caller's account", surface=Surface.FULL, answer=User)
def me() -> Response:
    return full(_user_json(_user(caller())))


@bp.patch("/users/me")
@describe(_TAG, "Change the caller's account", surface=Surface.FULL, body=Profile, answer=Literal[True])
def change_me() -> Response:
    body = loose_body()
    nickname = body.get("nickname")
    if nickname is None:
        raise ApiError(ARGUMENT, "required argument are missing: nickname; nothing else can be changed here")
    if not isinstance(nickname, str) or not nickname.strip() or len(nickname) > _MAX_NICKNAME:
        raise ApiError(ARGUMENT, f"`nickname` should have 1 to {_MAX_NICKNAME} characters")
    services().users.rename(caller().user_id, text(nickname.strip()))
    return full(True)


def _user(who: Caller) -> UserView:
    user = services().users.get(who.user_id)
    if user is None:
        raise InvalidInput("this user is gone")
    return user


def _text(body: dict[str, Any], key: str, most: int = _MAX_EMAIL) -> str:
    given = body.get(key)
    if not isinstance(given, str) or len(given) > most:
        raise ApiError(ARGUMENT, f"`{key}` should be a string of at most {most} characters")
    return text(given)


def _user_json(user: UserView) -> dict[str, Any]:
    return {
        "id": user.id,
        "nickname": user.nickname,
        "email": user.email,
        "avatar": None,
        "language": "English",
        "timezone": None,
        "color_schema": "Bright",
        "login_channel": "password",
        "is_active": "1" if user.is_active else "0",
        "is_anonymous": "0",
        "is_authenticated": "1",
        "is_superuser": user.is_superuser,
        "status": "1",
        "create_time": user.create_ms,
        "create_date": date_text(user.create_ms),
        "update_time": user.create_ms,
        "update_date": date_text(user.create_ms),
    }
