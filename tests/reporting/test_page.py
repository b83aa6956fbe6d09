from __future__ import annotations

import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import pytest

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.causes import KINDS
from tidings.model.outcome import CAUSES, Outcome, table
from tidings.reporting import page
from tidings.reporting.page import Report, render_page, write_page
from tidings.reporting.templates import asset

NASTY = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)> 🎉 \u2028"


class Seen(HTMLParser):
    """The elements and the text of a page, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside = ""  # the script or style element that we are in
        self.data = ""
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script" and self.tags[-1][1].get("id") == "data":
            self.data += data
        if not self.inside:
            self.text += data


def test_the_page_needs_nothing_from_outside(report):
    seen = Seen(render_page(report))
    for tag, attributes in seen.tags:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base"}
        assert not {"src", "href", "action"} & set(attributes)
    assert "url(" not in asset("page.css")
    assert "@import" not in asset("page.css")
    assert "default-src 'none'" in render_page(report)


def test_every_cause_of_loss_has_a_colour():
    styles = asset("page.css")
    assert [cause for cause in CAUSES if f"--lost-{cause}: #" not in styles] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_cause_of_late_events_has_a_colour_that_there_is(kind):
    colours = asset("places.js").split("const CAUSE_COLOURS = {")[1].split("}")[0]
    named = {
        key.strip(): colour for key, colour in re.findall(r'"?([a-z -]+?)"?: "([\w-]+)"', colours)
    }
    assert f"--{named[kind]}: #" in asset("page.css")


def test_a_hundred_subscribers_stay_far_below_a_megabyte(report):
    assert len(render_page(report).encode()) < 600_000


def test_the_answer_stands_in_the_page_itself_in_words(report):
    seen = Seen(render_page(report))
    words = " ".join(seen.text.split())
    assert f"{100 * report.outcomes['measured'].on_time:.1f} % of the wanted events" in words
    worst = report.outcomes["measured"].worst(1)["subscriber"].iloc[0]
    assert f"the worst, {worst} at broker" in words
    assert "Market and airport feeds" in words
    assert report.notes[0] in words
    assert "sojourns on a path are independent" in words


@pytest.mark.parametrize(
    "sources", [["predicted"], ["simulated"], ["measured"], ["predicted", "measured"]]
)
def test_any_subset_of_sources_makes_a_page(report, sources):
    fewer = dataclasses.replace(
        report, outcomes={s: report.outcomes[s] for s in sources}, parameters=None, notes=()
    )
    seen = Seen(render_page(fewer))
    assert json.loads(seen.data)["sources"] == sources
    assert not any(attributes.get("id") == "parameters" for _, attributes in seen.tags)


def test_names_can_be_anything(make_report):
    report = make_report(subscribers=3, rename=lambda name: f"{name} {NASTY}")
    report = dataclasses.replace(report, title=NASTY, notes=(NASTY,))
    text = render_page(report)
    seen = Seen(text)
    scripts = [attributes for tag, attributes in seen.tags if tag == "script"]
    assert len(scripts) == 2
    assert not any(tag == "img" for tag, _ in seen.tags)
    names = [each["name"] for each in json.loads(seen.data)["subscribers"]]
    assert names == [f"client {i:03d} {NASTY}" for i in range(3)]
    assert NASTY in seen.text


def test_only_the_scripts_written_here_may_run(report):
    text = render_page(report)
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)
    assert script is not None
    assert f"script-src '{page.script_hash(script[1])}'" in text


def test_an_outcome_with_nothing_in_it_makes_a_page(report):
    empty = Outcome(source="measured", subscribers=table("subscribers"))
    text = render_page(dataclasses.replace(report, outcomes={"measured": empty}, parameters=None))
    assert "No published event matches" in text


def test_nan_and_infinity_make_a_page(report):
    rows = [{"subscriber": "client 000", "broker": "paris", "count": 1, "on_time": math.nan}]
    stuck = {"broker": "paris", "utilisation": 1.3, "wait_mean_s": math.inf}
    odd = Outcome(
        source="predicted",
        subscribers=table("subscribers", rows),
        brokers=table("brokers", [stuck]),
    )
    text = render_page(Report(title="", system=report.system, outcomes={"predicted": odd}))
    assert json.loads(Seen(text).data)["outcomes"]["predicted"]["on_time"] == [None]


def test_warnings_stand_at_the_top(report):
    loud = dataclasses.replace(
        report.outcomes["predicted"], provenance={"warnings": ["beware <b>"]}
    )
    text = render_page(dataclasses.replace(report, outcomes={"predicted": loud}))
    assert "predicted: beware &lt;b&gt;" in text
    assert text.index("beware") < text.index('id="topology"')


def test_a_system_whose_ways_are_unknown_still_has_a_page(report, monkeypatch):
    def refuse(*_):
        raise UnsupportedError("too many contents")

    monkeypatch.setattr(page, "explain", refuse)
    assert "could not be computed: too many contents" in render_page(report)


def test_unknown_sources_are_refused(report):
    with pytest.raises(ValueError, match="wants some of"):
        Report(title="x", system=report.system, outcomes={})
    with pytest.raises(ValueError, match="guessed"):
        Report(title="x", system=report.system, outcomes={"guessed": report.outcomes["measured"]})


def test_the_same_report_is_the_same_page(report):
    assert render_page(report) == render_page(report)


def test_writing_leaves_the_page_and_nothing_else(report, tmp_path):
    target = tmp_path / "deep" / "page.html"
    assert write_page(report, target) == target
    assert target.read_text(encoding="utf-8") == render_page(report)
    assert [each.name for each in target.parent.iterdir()] == ["page.html"]


def test_a_failed_write_leaves_the_old_page(report, tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("tidings.model.writing.os.replace", fail)
    with pytest.raises(InvalidInputError, match="cannot be written: disk full"):
        write_page(report, target)
    assert target.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_half_a_character_in_a_name_does_not_stop_the_page(report, tmp_path):
    odd = dataclasses.replace(report, title="half \ud83c")
    assert "half ?" in write_page(odd, tmp_path / "page.html").read_text(encoding="utf-8")
