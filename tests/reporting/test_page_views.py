"""What can be chosen on the page and taken from it: wide screen and phone, light and dark."""

from __future__ import annotations

import csv
import io
import re
from functools import cache
from itertools import combinations

import pytest

from made_up_pages import SHAPES, TOPICS, made_up_report
from tidings.model.study import Curves, Section, TextTable

pytestmark = pytest.mark.browser
VIEWS = [
    pytest.param({"viewport": {"width": width, "height": 800}, "color_scheme": scheme}, id=name)
    for width in (1440, 390)
    for scheme in ("light", "dark")
    for name in [f"{width}-{scheme}"]
]
MAP = "#topology svg[role=group]"
RING = 4  # pixels: how wide it is drawn around large brokers
NASTY = '=HYPERLINK("http://x.example");@SUM(1) "quoted", <b>&'
LONG_NUMBER = re.compile(r"\d\.\d{6,}|\d{12,}")


@pytest.fixture(params=VIEWS)
def view(request):
    return request.param


@cache
def report_of(shape: str = "star", brokers: int = 15, subscribers: int = 60):
    return made_up_report(shape, brokers, subscribers)


def rows(page):
    return page.locator("#everybody tbody tr")


def column(page, title):
    titles = page.locator("#everybody thead th button").all_inner_texts()
    return page.locator(f"#everybody tbody td:nth-child({titles.index(title) + 1})")


def boxes(page, selector):
    return page.locator(selector).evaluate_all(
        "all => all.map((each) => { const box = each.getBoundingClientRect();"
        " return [box.left, box.top, box.right, box.bottom]; })"
    )


def overlap(one, other, slack):
    return all(
        one[axis] + slack < other[axis + 2] and other[axis] + slack < one[axis + 2]
        for axis in (0, 1)
    )


def test_a_broker_lists_its_own_subscribers_and_nobody_elses(opened, view):
    # Every cause names site 00, so a search for its name would list everybody.
    page = opened(report_of(), **view)
    page.locator("#topology .broker[data-name='site 00']").click()
    assert set(column(page, "broker").all_inner_texts()) == {"site 00"}
    assert rows(page).count() == 60 / 15
    assert page.locator("#topology .broker.here").get_attribute("data-name") == "site 00"
    page.locator("#only").select_option("")
    assert rows(page).count() == 50


@pytest.mark.parametrize("shape", SHAPES)
def test_the_map_fits_whatever_the_topology(opened, view, shape):
    brokers = 100
    page = opened(report_of(shape, brokers, 100), **view)
    assert page.locator("#topology .node").count() == brokers
    frame = boxes(page, "#topology")[0]
    marks = boxes(page, "#topology .node")
    names = boxes(page, "#topology .name")
    assert len(names) >= brokers / 4
    for left, top, right, bottom in marks + names:
        assert frame[0] <= left
        assert right <= frame[2]
        assert frame[1] <= top
        assert bottom <= frame[3]
    assert not any(overlap(*pair, slack=1.0) for pair in combinations(marks, 2))
    assert not any(overlap(*pair, slack=3.0) for pair in combinations(names, 2))
    written = page.locator("#topology .hint").last.inner_text()
    if len(names) < brokers:
        assert written.startswith(f"{brokers - len(names)} of {brokers} names do not fit")
    assert page.evaluate("document.documentElement.scrollWidth") == view["viewport"]["width"]


def test_rings_of_few_large_brokers_are_not_cut(opened, view):
    page = opened(report_of("ring", 6, 12), **view)
    left, top, right, bottom = boxes(page, MAP)[0]
    rings = boxes(page, "#topology .ring")
    assert len(rings) == 6
    assert min(each[0] for each in rings) >= left + RING / 2
    assert min(each[1] for each in rings) >= top + RING / 2
    assert max(each[2] for each in rings) <= right - RING / 2
    assert max(each[3] for each in rings) <= bottom - RING / 2


@pytest.mark.parametrize("view", VIEWS[:1])  # on a phone the margin is narrower than names
def test_names_of_a_large_star_do_not_lie_on_its_links(opened, view):
    page = opened(report_of("star", 40, 40), **view)
    left, top, *_ = boxes(page, MAP)[0]
    names = boxes(page, "#topology .name")
    ends = page.locator("#topology line.edge").evaluate_all(
        'all => all.map((one) => ["x1", "y1", "x2", "y2"].map((at) => +one.getAttribute(at)))'
    )
    assert len(ends) == 39
    over = {
        number
        for number, (low_x, low_y, high_x, high_y) in enumerate(names)
        for x1, y1, x2, y2 in ends
        for part in range(301)
        if low_x + 2 < left + x1 + part / 300 * (x2 - x1) < high_x - 2
        and low_y + 2 < top + y1 + part / 300 * (y2 - y1) < high_y - 2
    }
    assert len(over) <= 1  # that of the hub


def test_a_map_of_fifteen_sites_names_all_of_them(opened, view):
    page = opened(report_of(), **view)
    assert page.locator("#topology .name").count() == 15


def test_costs_are_shown_by_cause_and_by_time_with_links(opened, view):
    page = opened(report_of(), **view)
    labels = page.locator("#costs .row-label")
    assert labels.all_text_contents()[0].startswith("waiting at")
    page.get_by_role("button", name="Mean time at each place").click()
    assert any("→" in each for each in labels.all_text_contents())


def test_legends_cover_every_colour_of_their_chart(opened, view):
    page = opened(report_of(), **view)
    colours = """(section) => ["svg.legend-not, svg:not(.legend svg) .segment", ".legend rect"].map(
      (selector) => [...new Set([...section.querySelectorAll(selector)].map(
        (each) => getComputedStyle(each).fill))].sort())"""
    for switch in ("What each cause costs", "Mean time at each place"):
        page.get_by_role("button", name=switch).click()
        used, explained = page.locator("#costs").evaluate(colours)
        assert used
        assert used == explained
    for part in ("#subscriber", "#losses"):
        used, explained = page.locator(part).evaluate(colours)
        assert used
        assert set(used) <= set(explained)
    assert len(set(explained)) == len(explained)
    said = page.locator("#topology .legend").inner_text()
    assert all(each in said for each in ("0 % on time", "100 %", "busy for 75 %", "loses events"))


def test_events_are_grouped_by_broker_group_and_topic(opened, view):
    page = opened(report_of(), **view)
    bars = page.locator("#losses g.pickable")
    for name, count in (("By home broker", 15), ("By group", 4), ("By topic", len(TOPICS))):
        page.get_by_role("button", name=name).click()
        assert bars.count() == count
    bars.first.click()
    topic = page.locator("#only").input_value().removeprefix("topic:")
    assert topic in TOPICS
    assert rows(page).count() == 60 / len(TOPICS)
    page.get_by_role("button", name="By group").click()
    bars.first.focus()
    page.keyboard.press("Enter")
    assert len(set(column(page, "group").all_inner_texts())) == 1


def test_the_menu_leads_to_every_section(opened, view):
    section = Section(
        title="What if", exhibits=(TextTable(title="a", columns=("b",), rows=(("c",),)),)
    )
    page = opened(made_up_report(sections=[section]), **view)
    links = page.locator("#menu a")
    assert links.count() == page.locator("main section").count()
    assert "What if" in links.all_inner_texts()
    page.emulate_media(reduced_motion="reduce")
    for text in ("Brokers and links", "Network"):
        links.get_by_text(text, exact=True).click()
        target = "#places" if text.startswith("Brokers") else "#topology"
        top = boxes(page, target)[0][1]
        assert 0 <= top < 120  # below the menu, which stays in sight
        assert boxes(page, "#menu")[0][1] == 0


def test_what_is_chosen_survives_a_reload_and_can_be_sent(opened, view):
    page = opened(report_of(), **view)
    page.get_by_role("button", name="By group").click()
    page.get_by_role("button", name="Mean time at each place").click()
    page.locator("#everybody thead").get_by_role("button", name="late").click()
    page.locator("#everybody input").fill("client 00")
    page.locator("#topology .broker[data-name='site 03']").click()
    page.locator("#everybody tbody button.name").nth(2).click()

    def chosen(shown):
        return {
            "subscriber": shown.locator("#chosen").evaluate("e => e.selectedOptions[0].text"),
            "marked": shown.locator("tr.chosen").inner_text(),
            "rows": rows(shown).all_inner_texts(),
            "sorted": shown.locator("th[aria-sort=descending]").all_inner_texts(),
            "search": shown.locator("#everybody input").input_value(),
            "pressed": shown.locator("[aria-pressed=true]").all_inner_texts(),
        }

    before = chosen(page)
    assert before["pressed"] == ["Mean time at each place", "By group"]
    assert len(before["rows"]) == 4
    page.reload()
    assert chosen(page) == before
    sent = opened(report_of(), address="#" + page.url.partition("#")[2], **view)
    assert chosen(sent) == before


def test_an_address_of_another_page_does_no_harm(opened, view):
    address = "#subscriber=nobody&only=at:nowhere&sort=-x&fates=constructor&costs=y&at=%E0%A4%A"
    page = opened(report_of(), address=address, **view)
    assert rows(page).count() == 0  # nobody is at that broker
    page.locator("#only").select_option("group:desk 1")
    assert rows(page).count() == 15


def saved(page, button):
    with page.expect_download() as download:
        button.click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    return download.value.suggested_filename, list(csv.reader(io.StringIO(text)))


def test_tables_are_saved_whole_with_plain_numbers(opened, view):
    report = report_of()
    page = opened(report, **view)
    name, (titles, *lines) = saved(page, page.locator("#everybody .csv"))
    assert name == "subscribers.csv"
    assert len(lines) == 60  # not only those in sight
    share = report.outcomes["predicted"].subscribers.set_index("subscriber")["on_time"]
    at = titles.index("predicted (share on time)")
    assert {line[0]: float(line[at]) for line in lines} == pytest.approx(dict(share), abs=1e-5)
    page.locator("#topology .broker").first.click()
    assert len(saved(page, page.locator("#everybody .csv"))[1]) == 1 + 4  # what is listed
    assert len(saved(page, page.locator("#places .brokers .csv"))[1]) == 1 + 15
    assert len(saved(page, page.locator("#places .links .csv"))[1]) == 1 + 2 * 14


def test_no_cell_of_a_saved_table_is_a_formula(opened, view):
    grid = TextTable(
        title="Gains", columns=("change", "gain"), rows=((NASTY, "+1.2 %"), ("\t=1+1", "-3"))
    )
    report = made_up_report(
        subscribers=6,
        rename=lambda name: f"{NASTY} {name}",
        sections=[Section(title="What if", exhibits=(grid,))],
    )
    page = opened(report, **view)
    assert page.evaluate("document.documentElement.scrollWidth") == view["viewport"]["width"]
    for button in page.locator(".csv").all():
        _, lines = saved(page, button)
        for cell in (cell for line in lines for cell in line):
            # Also where a spreadsheet takes semicolons and tabs for the ends of cells.
            for part in re.split(r"[;,\t\r\n]", cell):
                assert not re.match(r"\s*[=@]", part)
                assert not re.match(r"\s*[-+]", part) or re.fullmatch(r"[-+][\d.e+-]+( %)?", part)
    assert [NASTY in line[0].replace("'", "") for line in lines[1:]] == [True, False]
    assert [line[1] for line in lines[1:]] == ["+1.2 %", "-3"]


def test_fits_are_folded_and_the_worst_is_open(opened, view):
    points = ((0.1, 1.0), (0.2, 2.0))
    fits = tuple(
        Curves(title=title, lines={"law": points}, x_label="s", y_label="%", fold=fold)
        for fold in ("worst", "better", "best")
        for title in ("Shares by time", "Longer than a time")
    )
    page = opened(made_up_report(sections=[Section(title="Fits", exhibits=fits)]), **view)
    folds = page.locator("details")
    assert folds.evaluate_all("all => all.map((each) => each.open)") == [True, False, False]
    assert page.locator("figure:visible").count() == 2
    folds.nth(2).locator("summary").click()
    assert page.locator("figure:visible").count() == 4


def test_no_innards_and_no_endless_digits_are_shown(opened, view):
    page = opened(report_of(), **view)
    text = page.locator("body").inner_text()
    assert "per_delivery" not in text
    assert "messages per delivery" in text
    assert not LONG_NUMBER.search(text)
    assert not re.search(r"\w_s\b|\bnan\b|undefined|\[object", text)


def test_who_has_no_curve_is_told_so(opened, view):
    page = opened(report_of(subscribers=400), **view)
    assert page.locator("#subscriber .curves path.curve").count() == 2  # one, and its legend
    page.locator("#everybody thead button", has_text="predicted").click()
    page.locator("#everybody tbody button.name").first.click()  # the best
    assert "not among the 300 worst" in page.locator("#subscriber .curves").inner_text()
