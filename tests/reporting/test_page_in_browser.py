"""The page in a real browser. Set TIDINGS_REQUIRE_BROWSER=1 to fail, not skip, without one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytestmark = pytest.mark.browser


def names(page):
    return page.locator("#everybody tbody button.name").all_inner_texts()


def chosen(page):
    return page.locator("#chosen").evaluate("select => select.selectedOptions[0].textContent")


def test_every_chart_has_its_marks(opened, report):
    page = opened(report)
    assert page.locator("#topology .broker").count() == 10
    assert page.locator("#topology .edge").count() == 9 + 2  # and their legend
    assert page.locator("#costs .row-label").count() == 20  # the longest of brokers and links
    assert page.locator("#agreement .mark.predicted").count() == 100
    assert page.locator("#agreement .mark.simulated").count() == 100
    assert page.locator("#subscriber .curves path.curve").count() == 6  # three, and their legend
    assert page.locator("#subscriber .deadline").count() >= 1
    assert page.locator("#subscriber .parts .segment").count() >= 3
    assert page.locator("#losses .segment").count() >= 22
    assert page.locator("#everybody tbody tr").count() == 50
    assert page.locator("#parameters tbody tr").count() == 10


def test_the_map_does_not_count_the_loss_of_a_way_that_carries_nothing(opened, report):
    def with_idle_way(outcome):
        links = outcome.links.copy()
        links.loc[links.index[0], ["events_per_s", "lost"]] = [0.0, 0.77]
        return dataclasses.replace(outcome, links=links)

    idle = {name: with_idle_way(each) for name, each in report.outcomes.items()}
    page = opened(dataclasses.replace(report, outcomes=idle))
    said = page.locator("#topology text.bad").all_text_contents()
    assert any("% lost" in each for each in said)
    assert not any("77" in each for each in said)


def test_the_worst_subscriber_is_chosen_first(opened, report):
    worst = report.outcomes["measured"].worst(1)["subscriber"].iloc[0]
    assert chosen(opened(report)).startswith(worst)


def test_headers_sort_both_ways(opened, report):
    page = opened(report)
    table = report.outcomes["measured"].subscribers
    assert names(page) == table.sort_values("on_time", kind="stable")["subscriber"].tolist()[:50]
    page.get_by_role("button", name="subscriber", exact=True).click()
    assert names(page) == sorted(table["subscriber"])[:50]
    page.keyboard.press("Enter")  # the header has the focus
    assert names(page) == sorted(table["subscriber"], reverse=True)[:50]
    header = page.locator("#everybody th").first
    assert header.get_attribute("aria-sort") == "descending"


def test_the_text_box_filters_and_pages_turn(opened, report):
    page = opened(report)
    page.locator("#everybody").get_by_role("button", name="Next").click()
    assert "51–100 of 100" in page.locator("#everybody [role=status]").inner_text()
    page.locator("#everybody input").fill("014 Client")  # every word, in any order and case
    assert names(page) == ["client 014"]
    page.locator("#everybody input").fill("nobody has this")
    assert names(page) == []


def test_choosing_a_point_changes_the_chosen_subscriber(opened, report):
    page = opened(report)
    before = chosen(page)
    curve = page.locator("#subscriber .curves svg path.curve").last.get_attribute("d")
    point = page.locator("#agreement .mark.predicted:not(.chosen)").last  # on top
    label = point.get_attribute("aria-label")
    point.click()
    name = label.split(" at ")[0]
    assert chosen(page) != before
    assert chosen(page).startswith(name)
    assert page.locator("#subscriber .curves svg path.curve").last.get_attribute("d") != curve
    assert page.locator("#agreement .mark.chosen").count() == 2  # in both scatter plots


def test_points_can_be_chosen_with_the_keyboard(opened, report):
    page = opened(report)
    point = page.locator("#agreement .mark.simulated").first
    name = point.get_attribute("aria-label").split(" at ")[0]
    point.focus()
    assert name in page.locator("#tooltip").inner_text()
    page.keyboard.press("Enter")
    assert chosen(page).startswith(name)


def test_the_menu_and_the_table_choose_too(opened, report):
    page = opened(report)
    page.locator("#chosen").select_option(index=40)
    assert page.locator("#everybody tr.chosen").count() == 1
    page.locator("#everybody tbody button.name").nth(3).click()
    assert chosen(page).startswith(names(page)[3])


def test_shares_of_brokers_are_weighted_by_what_is_wanted(opened, report):
    page = opened(report)
    subscribers = report.outcomes["measured"].subscribers.dropna(subset=["on_time"])
    for name, mine in subscribers.groupby("broker"):
        expected = np.average(mine["on_time"], weights=mine["wanted_per_s"])
        shown = page.locator(f".broker[data-name='{name}'] .strong").first.text_content()
        assert float(shown) == pytest.approx(100 * expected, abs=0.51)


def test_loss_bars_switch(opened, report):
    page = opened(report)
    page.get_by_role("button", name="Worst 30 subscribers").click()
    assert page.locator("#losses g.pickable").count() == 30
    page.get_by_role("button", name="By source").click()
    assert page.locator("#losses g[role=img]").count() == 3


@pytest.mark.parametrize("width", [400, 768, 1280])
def test_the_page_never_scrolls_sideways(opened, report, width):
    page = opened(report, viewport={"width": width, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_column_of_the_table_is_cut_on_a_common_screen(opened, report):
    page = opened(report, viewport={"width": 1280, "height": 800})
    # Errors and deadlines of three sources are the widest that rows get.
    page.evaluate(
        """() => document.querySelectorAll("#everybody tbody tr").forEach((row) => {
          [...row.cells].slice(2, 5).forEach((cell) => { cell.textContent = "46.81 ± 0.92 %"; });
          row.querySelector("td.list").textContent = "150 ms, 250 ms, 400 ms, 2 s, 5 s";
          row.lastChild.textContent = "waits at a broker of some name (17 % of its delay)";
        })"""
    )
    hidden = page.evaluate(
        """() => {
          const scroll = document.querySelector("#everybody table").parentElement;
          const cells = [...document.querySelectorAll("#everybody td:last-child")];
          return [scroll.scrollWidth - scroll.clientWidth,
                  Math.max(...cells.map((cell) => cell.scrollWidth - cell.clientWidth))];
        }"""
    )
    assert max(hidden) <= 0


@pytest.mark.parametrize("source", ["predicted", "simulated", "measured"])
def test_one_source_alone_is_drawn(opened, make_report, source):
    page = opened(make_report(sources=(source,)))
    assert page.locator("#agreement").count() == 0
    assert page.locator("#subscriber .curves path.curve").count() == 2
    assert page.locator("#losses .segment").count() >= 22


def test_nasty_names_are_shown_and_do_nothing(opened, make_report):
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'& 🎉"
    page = opened(make_report(subscribers=8, rename=lambda name: f"{name} {nasty}"))
    assert page.locator("img").count() == 0
    assert sorted(names(page)) == [f"client 00{i} {nasty}" for i in range(8)]
    page.locator("#agreement .mark").first.hover(force=True)
    assert nasty in page.locator("#tooltip").inner_text()


def test_thousands_of_subscribers_are_usable(opened, make_report):
    page = opened(make_report(subscribers=2500, sources=("predicted", "measured")))
    assert page.locator("#agreement .mark").count() == 2000
    assert page.locator("#everybody tbody tr").count() == 50
    page.locator("#everybody input").fill("client 2499")
    page.locator("#everybody tbody button.name").click()
    assert "client 2499" in chosen(page)


def test_the_page_prints(opened, report):
    page = opened(report)
    page.emulate_media(media="print")
    assert len(page.pdf()) > 20_000
