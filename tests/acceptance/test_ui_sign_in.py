"""Signing in and out in a browser, and what every page has: colours, keyboard, width."""

from __future__ import annotations

from playwright.sync_api import expect

from api.db.services.account_service import ADMIN_EMAIL
from tests.acceptance.browser import NARROW, Console, OpenPage, assert_accessible, assert_no_sideways_scroll
from tests.acceptance.instance import Instance


def test_a_person_signs_in_by_keyboard_and_out(site: Instance, open_page: OpenPage) -> None:
    page = open_page("/account", as_admin=False)
    expect(page).to_have_url(f"{site.address}/sign-in?next=/account")
    assert_accessible(page)
    page.keyboard.type(ADMIN_EMAIL)
    page.keyboard.press("Tab")
    page.keyboard.type(site.password() or "")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.address}/account")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Lax", False)
    page.get_by_label("Your account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    assert page.context.cookies() == []
    page.go_back()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_wrong_password_is_told_beside_the_form(open_page: OpenPage, console: Console) -> None:
    console.expected = ("401",)
    page = open_page("/sign-in", as_admin=False)
    page.get_by_label("E-mail").fill(ADMIN_EMAIL)
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").filter(has_text="do not match")).to_be_visible()
    expect(page.get_by_label("E-mail")).to_have_value(ADMIN_EMAIL)


def test_the_cookie_is_secure_behind_tls(site: Instance, open_page: OpenPage) -> None:
    page = open_page("/sign-in", as_admin=False)
    form = {"email": ADMIN_EMAIL, "password": site.password() or ""}
    behind_tls = page.context.request.post(
        "/sign-in", form=form, headers={"X-Forwarded-Proto": "https"}, max_redirects=0
    )
    assert "; Secure;" in behind_tls.headers["set-cookie"]  # a proxy on this host says so


def test_colours_are_chosen_and_kept_without_a_flash(open_page: OpenPage) -> None:
    page = open_page("/", dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_label("Colours: as the system").click()
    expect(page.get_by_label("Colours: light")).to_be_visible()
    light = page.evaluate(ground)
    assert light != dark
    page.reload(wait_until="domcontentloaded")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(ground) == light


def test_pages_fit_a_narrow_screen_and_can_be_read_in_the_dark(
    site: Instance, open_page: OpenPage, console: Console
) -> None:
    console.expected = ("/nothing-here",)
    page = open_page("/", size=NARROW, dark=True)
    for path in ("/", f"/datasets/{site.dataset('dark')}", "/datasets/new", "/account", "/nothing-here"):
        page.goto(path)
        assert_no_sideways_scroll(page)
        assert_accessible(page)
