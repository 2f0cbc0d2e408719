"""Knowledge bases and the account in a browser: the first steps, a form with errors beside its fields, a delete that
wants the name, API keys that are shown once, and a new password."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.acceptance.browser import (
    NARROW,
    OpenPage,
    assert_accessible,
    assert_no_sideways_scroll,
)
from tests.acceptance.instance import Instance

ZOE = ("zoe@example.com", "s3same-s3same")


def test_a_newcomer_is_led_from_the_first_page_to_the_first_file(site: Instance, open_page: OpenPage) -> None:
    made = site.call("POST", "/users", {"nickname": "zoe", "email": ZOE[0], "password": ZOE[1]})
    assert made["code"] == 0, made
    page = open_page("/sign-in", as_admin=False)
    page.get_by_label("E-mail").fill(ZOE[0])
    page.get_by_label("Password", exact=True).fill(ZOE[1])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("link", name="Make the first one").click()
    page.get_by_label("Name", exact=True).fill("My first")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("heading", name="My first")).to_be_visible()
    page.goto("/")
    page.get_by_role("link", name="Add files to My first").click()
    page.locator("#files").set_input_files([{"name": "a.txt", "mimeType": "text/plain", "buffer": b"A line of text."}])
    expect(page.locator("#rows .state")).to_have_text("Ready")
    page.goto("/")
    expect(page.get_by_role("link", name="Ask", exact=True)).to_be_visible()
    expect(page.locator("#cards")).to_contain_text("All ready")


def test_a_knowledge_base_is_made_changed_and_deleted(site: Instance, open_page: OpenPage) -> None:
    site.dataset("Taken")
    page = open_page("/datasets/new")
    assert_accessible(page)
    page.get_by_role("button", name="Make it").click()
    expect(page.locator("#name-error")).to_have_text("Give it a name.")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_label("Name", exact=True).fill("Statutes")
    page.get_by_label(re.compile("Laws")).check()
    page.get_by_label("Size of a chunk").fill("5000")
    page.get_by_role("button", name="Make it").click()
    expect(page.locator("[id='parser_config.chunk_token_num-error']")).to_contain_text("less than or equal to 2048")
    page.get_by_label("Size of a chunk").fill("256")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("heading", name="Statutes")).to_be_visible()
    (found,) = site.call("GET", "/datasets?name=Statutes")["data"]
    assert (found["chunk_method"], found["parser_config"]["chunk_token_num"]) == ("laws", 256)

    page.get_by_role("link", name="Settings").click()
    page.get_by_label("Name", exact=True).fill("Taken")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="already exists")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("Statutes of 1789")
    page.get_by_label(re.compile("Questions and answers")).check()
    expect(page.get_by_label("Size of a chunk")).to_be_hidden()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Statutes of 1789")).to_be_visible()

    page.get_by_role("link", name="Settings").click()
    assert_accessible(page)
    page.get_by_role("button", name="Delete…").click()
    sure = page.get_by_role("button", name="Delete it")
    expect(sure).to_be_disabled()
    assert_accessible(page)
    page.get_by_label("Type Statutes of 1789 to confirm").fill("Statutes of 1789")
    sure.click()
    expect(page.get_by_role("heading", name="Knowledge bases")).to_be_visible()
    assert site.call("GET", "/datasets?name=Statutes of 1789".replace(" ", "%20"))["code"] != 0


def test_a_key_is_shown_once_works_and_is_revoked(site: Instance, open_page: OpenPage) -> None:
    page = open_page("/account")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("What is it for?").fill("importer")
    page.get_by_role("button", name="Make it").click()
    field = page.get_by_label("API key", exact=True)
    key = field.input_value()
    assert key.startswith("ragflow-")
    assert_accessible(page)
    page.get_by_role("button", name="I have it").click()
    line = page.locator("#key-table tr", has_text="importer")
    expect(line).to_be_visible()
    assert key not in page.content()
    answer = page.request.get("/api/v1/users/me", headers={"Authorization": f"Bearer {key}"})
    assert answer.json()["code"] == 0
    line.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(line).to_be_hidden()
    refused = page.request.get("/api/v1/users/me", headers={"Authorization": f"Bearer {key}"})
    assert refused.status == 401
    page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
    assert_no_sideways_scroll(page)
