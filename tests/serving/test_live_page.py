"""The live page in a real browser: it follows its server, and stays usable whatever it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidings.serving import live
from tidings.serving.live import ServeSettings
from tidings.serving.server import serve
from watched_folders import ALARM, SECOND, made_state, write_state, write_system

pytestmark = pytest.mark.browser

PATIENCE_MS = 60_000
REFUSED = "net::ERR_"  # what a browser itself says of a server that is away
FIVE = [f"client {index}" for index in range(5)]
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\"'&lt;]]>", "‮x"]


@pytest.fixture
def opened(browser):
    """Opens pages, and at the end insists that nothing went wrong and nothing left the host."""
    complaints, requests, pages = [], [], []

    def show(url, **options):
        page = browser.new_page(**({"viewport": {"width": 1440, "height": 900}} | options))
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(url)
        pages.append((page, url))
        return page

    show.complaints = complaints
    yield show
    for page, _ in pages:
        page.close()
    assert complaints == []
    allowed = tuple(url.partition("?")[0] for _, url in pages)
    assert [each for each in requests if not each.startswith((*allowed, "data:"))] == []


def told(page, text):
    """Waits until the page says this first."""
    page.locator("#answer .lead", has_text=text).wait_for()


def cells(page, column):
    """What is in one column of the table."""
    return page.locator(f"#everybody tbody td:nth-child({column})").all_inner_texts()


def test_two_tabs_show_a_planted_alarm_without_a_reload(served, opened, folder):
    well = made_state(FIVE)
    write_state(folder, replace(well, standings=well.standings[:1], alarms=()))
    asker = served(folder, token="a-token-of-its-own")
    tabs = [opened(asker.served.door) for _ in range(2)]
    for page in tabs:
        assert page.url == asker.url  # the token has left the address
        assert page.locator("#alarms li").count() == 0
        page.evaluate("window.stays = true")
    write_state(folder, made_state(FIVE))
    for page in tabs:
        page.locator("#alarms li").wait_for()
        alarm = page.locator("#alarms li").inner_text()
        for words in ("Fewer events on time than promised", "9.0 %", "waiting at south"):
            assert words in alarm
        assert "double the speed of south" in alarm
        told(page, "3 of 5 subscribers get fewer events on time than promised.")
        assert page.title() == "(1) city · Tidings"
        assert cells(page, 2) == FIVE
        assert page.evaluate("window.stays")


def test_it_survives_a_server_that_ends_and_starts_again(opened, folder, monkeypatch):
    monkeypatch.setattr(live, "RETRY_MS", 100)
    settings = ServeSettings(folder=folder)
    with serve(settings, port=0) as running:
        page = opened(running.url)
        page.locator("#status", has_text="State of").wait_for()
    page.locator("#status.lost", has_text="Connection lost since").wait_for()
    told(page, "3 of 5")  # what was known stays
    write_state(folder, made_state(FIVE[:1]))
    with serve(settings, port=running.port):
        told(page, "1 of 1 subscriber gets fewer")
        page.locator("#status:not(.lost)", has_text="State of").wait_for()
        page.close()
    opened.complaints[:] = [each for each in opened.complaints if REFUSED not in each]


def test_a_watch_that_stands_still_is_noticed(served, opened, tmp_path):
    state = made_state(FIVE)
    write_state(tmp_path, replace(state, at_ns=state.at_ns - 3600 * SECOND))
    page = opened(served(tmp_path).url)
    page.locator("#status.lost", has_text="Nothing new for 60 min").wait_for()


def test_any_of_a_thousand_is_found_chosen_and_followed(served, opened, tmp_path):
    names = [f"client {index}" for index in range(999)]
    write_state(tmp_path, made_state([*names, "Last of All"]))
    page = opened(served(tmp_path).url)
    page.locator("#everybody .hint", has_text="The worst 300 of 1,000").wait_for()
    assert len(cells(page, 2)) == 50
    page.get_by_label("Filter").fill("last all")
    page.get_by_role("button", name="Last of All").click()
    title = page.locator("#subscriber-title", has_text="Last of All")
    title.wait_for()
    details = page.locator("#subscriber .details", has_text="900 ms")
    details.wait_for()  # it is asked for by name
    assert "99.5 % (99.2 % to 99.80 %)" in details.inner_text()
    page.get_by_role("button", name="Last of All").focus()
    state = made_state([*names, "Last of All"])
    late = replace(state.standings[-1], p99_s=2.5)
    write_state(tmp_path, replace(state, standings=(*state.standings[:-1], late)))
    page.locator("#subscriber .details", has_text="2.5 s").wait_for()
    assert title.is_visible()
    page.locator("#everybody td", has_text="2.5 s").wait_for()  # drawn again
    assert page.evaluate("document.activeElement.textContent") == "Last of All"
    assert page.get_by_label("Filter").input_value() == "last all"


def test_hostile_names_are_shown_and_run_nothing(served, opened, tmp_path):
    alarm = replace(ALARM, where=(HOSTILE[1],), cause=HOSTILE[0], what=HOSTILE[1], do=HOSTILE[0])
    path = write_system(tmp_path, HOSTILE)
    state = made_state(HOSTILE, alarms=(alarm,), backlogs={HOSTILE[1]: 3}, system=HOSTILE[1])
    write_state(tmp_path, replace(state, system_file=path))
    page = opened(served(tmp_path).url)
    told(page, "3 of 4")
    assert cells(page, 2) == HOSTILE
    page.get_by_role("button", name=HOSTILE[1]).click()
    page.locator("#subscriber-title", has_text=HOSTILE[1]).wait_for()
    assert page.locator("img, script:not(#data)").count() == 1  # the page's own


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_it_fits_and_has_all_its_parts(served, opened, tmp_path, width, scheme):
    path = write_system(tmp_path, FIVE)
    for _ in range(3):
        write_state(tmp_path, made_state(FIVE, system_file=path))
    viewport = {"width": width, "height": 900}
    page = opened(served(tmp_path).url, viewport=viewport, color_scheme=scheme)
    page.locator("#topology .broker.alarmed").wait_for()
    assert page.locator("#topology .broker").count() == 3
    assert page.locator("#series canvas").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lead = page.locator("#answer .lead").bounding_box()
    assert lead["y"] + lead["height"] < 900  # on the first screen
    page.locator("#series .u-over").hover()
    page.locator("#series .readout", has_text="measured 97.0 %").wait_for()


def test_the_saved_page_needs_no_server(opened, tmp_path, browser):
    folder = tmp_path / "watched"
    folder.mkdir()
    names = [f"client {index}" for index in range(400)]
    write_state(folder, made_state([*names, HOSTILE[0]]))
    with serve(ServeSettings(folder=folder), port=0) as running:
        page = opened(running.url)
        with page.expect_download(timeout=PATIENCE_MS) as download:
            page.get_by_text("Save this page").click()
        download.value.save_as(tmp_path / "saved.html")
        page.close()
    saved = opened((tmp_path / "saved.html").as_uri(), offline=True)
    saved.locator("#status", has_text="Saved: state of").wait_for()
    told(saved, "3 of 401")
    assert saved.get_by_text("Save this page").count() == 0
    saved.get_by_label("Filter").fill("alert")
    assert cells(saved, 2) == [HOSTILE[0]]
    assert saved.locator("#series canvas").count() == 1
