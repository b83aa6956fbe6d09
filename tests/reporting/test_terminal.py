from __future__ import annotations

import io
import math
import re

import pandas as pd
import pytest
from rich.console import Console

from tidings.model.outcome import LOSSES, Outcome, table
from tidings.reporting import terminal
from tidings.validation.comparison import compare


def printed(renderable, width=80, *, colour=False):
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=colour).print(renderable)
    return file.getvalue()


@pytest.fixture
def tables(report):
    measured, simulated = report.outcomes["measured"], report.outcomes["simulated"]
    return {
        "outcome": terminal.outcome_table(measured),
        "brokers": terminal.broker_table(measured),
        "links": terminal.link_table(measured),
        "comparison": terminal.comparison_table(compare(simulated, measured)),
        "side by side": terminal.side_by_side(list(report.outcomes.values())),
        "parameters": terminal.parameters_table(report.parameters),
    }


@pytest.mark.parametrize("width", [80, 120])
def test_every_table_fits_without_cutting_anything(tables, width):
    for name, renderable in tables.items():
        text = printed(renderable, width)
        assert max(len(line.rstrip()) for line in text.splitlines()) <= width, name
        assert "…" not in text, name
        assert "\x1b" not in text, name


def test_a_wider_terminal_shows_more(tables):
    assert "wanted" not in printed(tables["outcome"], 80).splitlines()[2]
    assert "wanted" in printed(tables["outcome"], 140).splitlines()[2]


def test_a_narrow_terminal_keeps_the_name_and_the_on_time_share(tables):
    header = printed(tables["outcome"], 50).splitlines()[3]
    assert "on time" in header
    assert "mean delay" not in header


def test_what_is_left_out_is_said_and_nothing_else_is_missing(tables):
    titles = [column.title for column in tables["outcome"].columns]
    for width in (50, 80, 100, 200):
        text = printed(tables["outcome"], width)
        (header,) = re.findall(r"^ *(subscriber .* on time .*?) *$", text, re.MULTILINE)
        _, _, caption = " ".join(text.split()).partition("left out for want of room: ")
        left_out = [each for each in caption.partition(" (")[0].split(", ") if each]
        assert sorted(re.split(r" {2,}", header) + left_out) == sorted(titles)
        assert bool(left_out) == (width < 200)


def test_words_that_do_not_fit_are_folded():
    words = "a deadline that is shorter than what the longest path takes without any waiting"
    column = terminal.Column(title="cause", cells=[words], left=True)
    number = terminal.Column(title="cost", cells=["+12.34 %"])
    text = printed(terminal.FittingTable(title="t", columns=[column, number]), 40)
    assert "+12.34 %" in text
    assert [each for each in words.split() if each not in text] == []
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 40


def test_what_becomes_of_missed_events_is_seen_at_the_width_of_a_pipe():
    same = {"broker": "frankfurt", "count": 1, "wanted_per_s": 123.4, "on_time": 0.873}
    same |= {"on_time_se": 0.00042, "late": 0.01, "delivered": 0.883}
    same |= {"delay_mean_s": 0.01234, "delay_p95_s": 0.01234, "delay_p99_s": 0.01234}
    rows = [{"subscriber": f"subscriber {n}", loss: 0.117} for n, loss in enumerate(LOSSES)]
    found = table("subscribers", [same | row for row in rows])
    outcome = Outcome(source="simulated", subscribers=found)
    shown = printed(terminal.outcome_table(outcome), width=120)
    assert "mostly" in shown  # what becomes of missed events is no cause
    assert "main cause" not in shown
    for loss in LOSSES:
        assert loss.removeprefix("lost_").replace("_", " ") in shown


def test_the_worst_come_first_or_the_order_is_kept(report):
    measured = report.outcomes["measured"]
    worst = measured.worst(1)["subscriber"].iloc[0]
    first = printed(terminal.outcome_table(measured, limit=1)).splitlines()
    assert worst in first[4]
    assert "1 of 100 subscribers" in " ".join(first)
    kept = printed(terminal.outcome_table(measured, limit=1, worst_first=False))
    assert "client 000" in kept


def small(source, **row):
    return Outcome(
        source=source,
        subscribers=table("subscribers", [{"subscriber": "a", "broker": "hub", "count": 1} | row]),
    )


def test_numbers_carry_units_and_standard_errors():
    row = {"on_time": 0.873, "on_time_se": 0.004, "late": 0.1, "lost_link": 0.027}
    text = printed(terminal.outcome_table(small("measured", delay_mean_s=0.25, **row)))
    for words in ("87.3 ± 0.4 %", "10.0 %", "2.7 %", "250 ms"):
        assert words in text


def test_what_is_unknown_is_a_dash():
    text = printed(terminal.outcome_table(small("measured", on_time=math.nan)))
    assert "nan" not in text
    assert "–" in text


def test_names_cannot_reach_the_terminal_as_commands():
    outcome = small("measured", on_time=0.5)
    outcome.subscribers["subscriber"] = "\x1b[31mred\x07 [bold]x[/bold]"
    text = printed(terminal.outcome_table(outcome))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]x[/bold]" in text


def test_long_names_are_shortened():
    outcome = small("measured", on_time=0.5)
    outcome.subscribers["subscriber"] = "x" * 500
    lines = printed(terminal.outcome_table(outcome), 60).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 60


def test_agreement_says_how_far_how_often_and_what_is_missing():
    a = small("simulated", on_time=0.90, on_time_se=0.01)
    b = small("measured", on_time=0.80, on_time_se=0.01)
    words = terminal.agreement(compare(a, b))
    assert "mean absolute error 10 %" in words
    assert "mean difference +10.00 %" in words
    assert "0 % agree within two combined standard errors" in words
    b.subscribers["subscriber"] = "b"
    assert "2 subscribers in only one of the results" in terminal.agreement(compare(a, b))


def test_z_of_parameters_is_the_error_in_standard_errors():
    rows = pd.DataFrame({"estimate": [1.2, 3.0], "truth": [1.0, None], "standard_error": 0.1})
    z = terminal.parameter_z(rows)
    assert z[0] == pytest.approx(2.0)
    assert math.isnan(z[1])


def test_parameters_without_a_truth_have_no_z(report):
    text = printed(terminal.parameters_table(report.parameters.drop(columns="truth")))
    assert "truth" not in text


def test_empty_outcomes_are_empty_tables():
    empty = Outcome(source="predicted", subscribers=table("subscribers"))
    for make in (terminal.outcome_table, terminal.broker_table, terminal.link_table):
        assert printed(make(empty))
    assert printed(terminal.side_by_side([empty]))


def test_quality_names_every_fate_and_reason():
    quality = pd.DataFrame(
        [("hops", "used", "", 1200), ("hops", "set aside", "left before it arrived", 3)],
        columns=["table", "fate", "reason", "rows"],
    )
    text = printed(terminal.quality_table(quality))
    assert "1,200" in text
    assert "left before it arrived" in text


def test_who_has_nobody_in_common_reads_no_number():
    def alone(name):
        rows = [{"subscriber": name, "broker": "x", "count": 1, "on_time": 0.5}]
        return Outcome(source="measured", subscribers=table("subscribers", rows))

    words = terminal.agreement(compare(alone("a"), alone("b")))
    assert words == (
        "Measured against measured: no subscriber could be compared. "
        "2 subscribers in only one of the results."
    )
