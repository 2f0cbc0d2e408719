"""Signing in and out over REST, and the account that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.db.models import User
from tests.rest_world import RestWorld, rest_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    with rest_world(tmp_path) as opened:
        opened.services.accounts.create_user("ann@example.com", "Ann", "s3same", is_superuser=True)
        yield opened


def login(world: RestWorld, path: str = "/api/v1/auth/login", **body: Any) -> Any:
    return world.client.post(path, json={"email": "ann@example.com", "password": "s3same"} | body)


@pytest.mark.parametrize("prefix", ["api", "v1"])
def test_a_login_gives_a_token_that_ends_with_a_logout(world: RestWorld, prefix: str) -> None:
    login_at, me_at = (
        ("/api/v1/auth/login", "/api/v1/users/me") if prefix == "api" else ("/v1/user/login", "/v1/user/info")
    )
    response = login(world, login_at, email=" ANN@example.com ")
    answer = response.get_json()
    assert (answer["code"], answer["message"], answer["data"]["nickname"]) == (0, "Welcome back!", "Ann")
    assert "password" not in str(answer).lower().replace("'login_channel': 'password'", "")
    token = response.headers["Authorization"]
    for header in (token, f"Bearer {token}"):
        told = world.client.get(me_at, headers={"Authorization": header}).get_json()
        assert (told["data"]["email"], told["data"]["is_superuser"]) == ("ann@example.com", True)
    headers = {"Authorization": token}
    dataset = world.client.post("/api/v1/datasets", json={"name": "a"}, headers=headers).get_json()
    assert dataset["code"] == 0
    key = world.client.post("/api/v1/system/tokens", headers=headers).get_json()["data"]["token"]
    if prefix == "api":
        assert world.client.post("/api/v1/auth/logout", headers=headers).get_json()["data"] is True
    else:
        assert world.client.get("/v1/user/logout", headers=headers).get_json()["data"] is True
    assert world.client.get(me_at, headers=headers).status_code == 401
    assert world.client.get(me_at, headers={"Authorization": key}).status_code == 200
    stored = world.rows.rows("SELECT * FROM login_session")
    assert token not in str(stored)


def test_a_token_ends_after_some_weeks_and_with_its_user(world: RestWorld) -> None:
    token = login(world).headers["Authorization"]
    headers = {"Authorization": token}
    world.rows.execute("UPDATE login_session SET create_ms = create_ms - 2500000000")
    assert world.client.get("/api/v1/users/me", headers=headers).get_json()["code"] == 0
    world.rows.execute("UPDATE login_session SET create_ms = create_ms - 2500000000")
    assert world.client.get("/api/v1/users/me", headers=headers).status_code == 401
    headers = {"Authorization": login(world).headers["Authorization"]}
    User.update(is_active=0).where(User.email == "ann@example.com").execute()
    assert world.client.get("/api/v1/users/me", headers=headers).status_code == 401
    refused = login(world).get_json()
    assert refused["code"] == 403 and "has been disabled" in refused["message"]


@pytest.mark.parametrize(
    ("body", "code", "phrase"),
    [
        ({"email": "eve@example.com"}, 109, "is not registered"),
        ({"password": "wrong"}, 109, "do not match"),
        ({"password": ["s3same"]}, 101, "`password`"),
        ({"email": None}, 101, "`email`"),
        ({"password": "x" * 100_000}, 101, "`password`"),
    ],
)
def test_logins_that_fail(world: RestWorld, body: dict[str, Any], code: int, phrase: str) -> None:
    response = login(world, **body)
    answer = response.get_json()
    assert (response.status_code, answer["code"], answer["data"]) == (200, code, None)
    assert phrase in answer["message"]
    assert "Authorization" not in response.headers


def test_an_empty_login_is_unauthorized(world: RestWorld) -> None:
    answer = world.client.post("/api/v1/auth/login", json={}).get_json()
    assert (answer["code"], answer["message"]) == (109, "Unauthorized!")


def test_only_an_administrator_registers_users(world: RestWorld) -> None:
    new = {"nickname": "Bob", "email": "bob@example.com", "password": "pw"}

    def register(body: dict[str, Any], key: str = "") -> Any:
        headers = {"Authorization": key} if key else {}
        return world.client.post("/v1/user/register", json=body, headers=headers).get_json()

    assert register(new)["code"] == 103 and "registration is disabled" in register(new)["message"].lower()
    assert register(new, world.key)["code"] == 103
    admin = login(world).headers["Authorization"]
    missing = register({"nickname": "Bob"}, admin)
    assert missing["code"] == 101 and "required argument are missing: email, password" in missing["message"]
    assert "Invalid email address" in register(new | {"email": "bob"}, admin)["message"]
    assert register(new | {"nickname": "x" * 129}, admin)["code"] == 101
    made = register(new, admin)
    assert (made["code"], made["data"]["email"], made["data"]["is_superuser"]) == (0, "bob@example.com", False)
    assert "has already registered" in register(new, admin)["message"]
    assert login(world, email="bob@example.com", password="pw").get_json()["code"] == 0
    assert register(new, "nonsense")["code"] == 401


def test_a_user_goes_by_another_name(world: RestWorld) -> None:
    assert world.ok("PATCH", "/users/me", json={"nickname": " Una "}) is True
    assert world.ok("GET", "/users/me")["nickname"] == "Una"
    for body in ({}, {"nickname": ""}, {"nickname": 5}, {"nickname": "x" * 129}):
        code, message = world.refused("PATCH", "/users/me", json=body)
        assert code == 101 and "nickname" in message
