"""Sessions of people in a browser: the cookie, what forged requests come to, where signing in leads, the headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.apps.browser_sessions import COOKIE, csrf_token, session_token
from api.db.models import User
from common.settings import ServerSettings
from tests.rest_world import RestWorld, new_caller, rest_world

ANN = "ann@example.com"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def give_password(world: RestWorld) -> None:
    """A hash that is cheap to check: a real one would take most of a test's time."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("s3same")
    change = User.update(email=ANN, password_hash=cheap).where(User.id == world.caller.user_id)
    world.rows.write(change.execute)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    with rest_world(tmp_path) as one:
        give_password(one)
        yield one


@pytest.fixture
def stranger(world: RestWorld) -> FlaskClient:
    return world.client.application.test_client()


@pytest.fixture
def ann(world: RestWorld, stranger: FlaskClient) -> FlaskClient:
    stranger.set_cookie(COOKIE, world.services.sessions.begin(world.caller))
    return stranger


def sign_in(
    client: FlaskClient, password: str = "s3same", headers: dict[str, str] | None = None, **more: str
) -> TestResponse:
    return client.post("/sign-in", data={"email": ANN, "password": password} | more, headers=headers)


def token_of(client: FlaskClient) -> str:
    cookie = client.get_cookie(COOKIE)
    assert cookie is not None
    return cookie.value


def csrf_of(client: FlaskClient) -> str:
    found = re.search(r'<meta name="csrf-token" content="(\w+)">', client.get("/").text)
    assert found is not None
    return found.group(1)


def test_strangers_are_led_to_the_door_and_back(stranger: FlaskClient) -> None:
    assert stranger.get("/").headers["Location"] == "/sign-in"
    led = stranger.get("/account?a=1&b=2")
    assert (led.status_code, led.headers["Location"]) == (302, "/sign-in?next=/account?a%3D1%26b%3D2")
    assert sign_in(stranger, next="/account?a=1").headers["Location"] == "/account?a=1"
    assert stranger.get("/account?a=1").status_code == 200
    assert stranger.get("/sign-in").status_code == 302


def test_the_cookie_is_closed_to_scripts_and_other_sites(stranger: FlaskClient) -> None:
    plain = sign_in(stranger).headers["Set-Cookie"]
    assert "HttpOnly" in plain and "SameSite=Lax" in plain and "Path=/" in plain and "Secure" not in plain
    secure = stranger.post("/sign-in", base_url="https://localhost", data={"email": ANN, "password": "s3same"})
    assert "Secure" in secure.headers["Set-Cookie"]


def test_the_scheme_is_believed_from_a_proxy_only_where_there_is_one(tmp_path: Path) -> None:
    for proxies, is_secure in ((0, False), (1, True)):
        (tmp_path / str(proxies)).mkdir()
        with rest_world(tmp_path / str(proxies), ServerSettings(proxies=proxies)) as world:
            give_password(world)
            answer = sign_in(world.client, headers={"X-Forwarded-Proto": "https", "X-Forwarded-Host": "mill.example"})
            assert ("Secure" in answer.headers["Set-Cookie"]) is is_secure


def test_signing_in_never_leads_to_another_site(stranger: FlaskClient) -> None:
    others = (
        "https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "evil", "/a\nb", "/\t/x",
        "\\\\evil.example", "http:/evil.example",
    )  # fmt: skip
    for elsewhere in others:
        assert elsewhere not in stranger.get("/sign-in", query_string={"next": elsewhere}).text
    for elsewhere in others:
        assert sign_in(stranger, next=elsewhere).headers["Location"] == "/"
        assert stranger.get("/sign-in", query_string={"next": elsewhere}).headers["Location"] == "/"


def test_a_wrong_password_tells_nothing_and_is_counted(tmp_path: Path) -> None:
    with rest_world(tmp_path, ServerSettings(failed_logins_per_minute=3)) as world:
        give_password(world)
        wrong = sign_in(world.client, "wrong")
        unknown = world.client.post("/sign-in", data={"email": "bob@example.com", "password": "wrong"})
        assert (wrong.status_code, unknown.status_code) == (401, 401)
        assert "Set-Cookie" not in wrong.headers
        assert wrong.text.replace(ANN, "") == unknown.text.replace("bob@example.com", "")
        sign_in(world.client, "wrong")
        late = sign_in(world.client)
        assert late.status_code == 429 and int(late.headers["Retry-After"]) > 0
        assert "Too many wrong passwords" in late.text and "Set-Cookie" not in late.headers


def test_a_session_that_has_ended_locks_nobody_out(tmp_path: Path) -> None:
    with rest_world(tmp_path, ServerSettings(failed_logins_per_minute=3)) as world:
        give_password(world)
        world.client.set_cookie(COOKIE, "of-yesterday")
        for _ in range(10):
            assert world.client.get("/api/v1/datasets").status_code == 401
        assert sign_in(world.client).status_code == 303


def test_the_api_takes_the_cookie_with_the_pages_token_only(ann: FlaskClient) -> None:
    assert ann.get("/api/v1/datasets").get_json() == {"code": 0, "data": [], "total_datasets": 0}
    own = {"X-CSRF-Token": csrf_of(ann)}
    assert own["X-CSRF-Token"] == csrf_token(token_of(ann))
    for headers in ({}, {"X-CSRF-Token": "x"}, own | {"Origin": "https://evil.example"}, own | {"Origin": "null"},
                    own | {"Sec-Fetch-Site": "cross-site"}, own | {"Sec-Fetch-Site": "same-site"}):  # fmt: skip
        refused = ann.post("/api/v1/datasets", json={"name": "forged"}, headers=headers)
        assert (refused.status_code, refused.get_json()["code"]) == (403, 403), headers
    job = ann.post("/api/v1/jobs", data={}, headers={})
    assert (job.status_code, job.mimetype, job.get_json()["code"]) == (
        403,
        "application/problem+json",
        "forged_request",
    )
    assert ann.get("/api/v1/datasets").get_json()["total_datasets"] == 0
    made = ann.post(
        "/api/v1/datasets",
        json={"name": "ours"},
        headers=own | {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
    )
    assert made.get_json()["code"] == 0
    ann.delete("/api/v1/datasets", json={"ids": [made.get_json()["data"]["id"]]}, headers=own)


def test_one_sessions_token_is_no_others(world: RestWorld, ann: FlaskClient) -> None:
    other = world.client.application.test_client()
    sign_in(other)
    assert csrf_of(other) != csrf_of(ann)
    refused = ann.post("/api/v1/datasets", json={"name": "x"}, headers={"X-CSRF-Token": csrf_of(other)})
    assert refused.status_code == 403


def test_a_key_needs_no_token_and_wins_over_a_cookie(world: RestWorld, stranger: FlaskClient) -> None:
    other = new_caller(world.rows, "Bob")
    stranger.set_cookie(COOKIE, world.services.sessions.begin(other))
    assert stranger.get("/api/v1/users/me").get_json()["data"]["nickname"] == "Bob"
    headers = {"Authorization": f"Bearer {world.key}", "Origin": "https://elsewhere.example"}
    made = stranger.post("/api/v1/datasets", json={"name": "by key"}, headers=headers).get_json()
    assert made["code"] == 0 and made["data"]["tenant_id"] == world.caller.tenant_id


def test_a_socket_takes_no_cookie(world: RestWorld) -> None:
    cookie = {"Cookie": f"{COOKIE}=abc"}
    with world.client.application.test_request_context("/ws/jobs/1", headers=cookie):
        assert session_token() == "abc"
    with world.client.application.test_request_context("/ws/jobs/1", headers=cookie | {"Upgrade": "WebSocket"}):
        assert session_token() == ""


def test_signing_out_ends_the_session_and_needs_our_own_form(ann: FlaskClient) -> None:
    token, csrf = token_of(ann), csrf_of(ann)
    assert ann.post("/sign-out").status_code == 403
    assert ann.get("/").status_code == 200
    gone = ann.post("/sign-out", data={"csrf_token": csrf})
    assert gone.status_code == 303 and "Max-Age=0" in gone.headers["Set-Cookie"]
    ann.set_cookie(COOKIE, token)
    assert ann.get("/").headers["Location"] == "/sign-in"


def test_another_site_signs_nobody_in(stranger: FlaskClient) -> None:
    assert sign_in(stranger, headers={"Origin": "https://evil.example"}).status_code == 403
    assert sign_in(stranger, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert stranger.get_cookie(COOKIE) is None


def test_pages_run_nothing_but_our_own_files(ann: FlaskClient, stranger: FlaskClient) -> None:
    for path in ("/", "/account", "/sign-in", "/nothing"):
        page = ann.get(path, headers=HTML, follow_redirects=True)
        policy = dict(part.strip().partition(" ")[::2] for part in page.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["object-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["form-action"] == "'self'"
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Referrer-Policy"] == "same-origin"
        assert "no-store" in page.headers["Cache-Control"]
        assert not re.search(
            r"<script(?![^>]*(src=|type=\"application/json\"))|<style|\sstyle=|\son\w+=|javascript:", page.text
        )


def test_the_first_page_is_small_and_its_files_are_kept(ann: FlaskClient) -> None:
    page = ann.get("/")
    total = len(page.data)
    pending = set(re.findall(r'"(/assets/[^"#]+)', page.text))
    seen: set[str] = set()
    while pending:
        path = pending.pop()
        seen.add(path)
        with ann.get(path) as file:
            assert file.status_code == 200 and "immutable" in file.headers["Cache-Control"], path
            total += len(file.data)
            if path.endswith(".js"):
                base = path.rsplit("/", 1)[0]
                pending |= {f"{base}/{name}" for name in re.findall(r'from "\./([\w.-]+)"', file.text)} - seen
    assert total < 100_000, total
    old = re.sub(r"/assets/\w+/", "/assets/000000000000/", path)
    with ann.get(old) as file:
        assert file.status_code == 200 and "immutable" not in file.headers["Cache-Control"]


def test_unknown_pages_are_told_to_people_as_pages_and_to_programs_as_before(stranger: FlaskClient) -> None:
    page = stranger.get("/nothing", headers=HTML)
    assert (page.status_code, page.mimetype) == (404, "text/html")
    assert page.headers["X-Request-Id"] in page.text
    assert stranger.get("/nothing").get_json()["code"] == 404
    assert stranger.get("/api/v1/nothing", headers=HTML).get_json()["code"] == 404
