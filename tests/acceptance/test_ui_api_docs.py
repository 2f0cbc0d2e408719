"""The page of the API in a browser: everything folded, opened by keyboard, silent, and narrow enough."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.acceptance.browser import NARROW, OpenPage, assert_accessible, assert_no_sideways_scroll


def test_the_api_is_described_for_people(open_page: OpenPage) -> None:
    page = open_page("/api/docs", as_admin=False)
    assert_accessible(page)
    one = page.locator("#post_api_v1_retrieval")
    expect(one.get_by_text("similarity_threshold")).to_be_hidden()
    one.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(one.get_by_text("similarity_threshold").first).to_be_visible()
    expect(one.get_by_role("region", name="Body")).to_be_visible()
    page.get_by_role("link", name="Webhooks").click()
    expect(page.get_by_role("heading", name="Webhooks", exact=True)).to_be_in_viewport()


def test_it_fits_a_phone_and_leads_back(open_page: OpenPage) -> None:
    page = open_page("/api/docs", size=NARROW, dark=True)
    page.locator("#post_api_v1_datasets summary").click()
    assert_no_sideways_scroll(page)
    expect(page.get_by_label("Your account")).to_be_visible()
