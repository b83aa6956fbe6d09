"""Every result as a notebook shows it: small, escaped, with few digits; pandas, Arrow, charts."""

from __future__ import annotations

import inspect
import pickle
import re
from html.parser import HTMLParser

import matplotlib as mpl
import pandas as pd
import pytest

import tidings as td
from tidings.characterisation.fit.parameters import PARAMETER_COLUMNS
from tidings.model.shown import MOST_ROWS, Shown

mpl.use("agg")
SYSTEM = """
tidings: 1
lifetime: 400ms
recovery: {scheme: periodic}
brokers:
  hub: {service: {exponential: 20ms}, failure: {mtbf: 900s, mttr: 10s}}
  "<b>east": {service: {exponential: 50ms}}
links: [{between: [hub, "<b>east"], delay: 10ms}]
publishers: {p: {at: hub, every: {exponential: 100ms}, content: {event: {topic: a}}}}
subscribers:
  "<script>alert(1)</script>": {at: "<b>east", wants: {}}
  near: {at: hub, wants: {}}
"""
CALM = SYSTEM.replace(", failure: {mtbf: 900s, mttr: 10s}", "").replace(
    "recovery: {scheme: periodic}\n", ""
)
GROUP = """
tidings: 1
lifetime: 1s
brokers: {b: {}}
publishers: {p: {at: b, every: {rate: 20/s}, content: {event: {x: 1}}}}
subscribers: {w: {at: b, wants: {x: 1}, processing: {exponential: 60ms}, consumers: 2}}
"""
QUICK = {"target": 0.5, "simulate": False}


def results():
    """One result of every kind, by name."""
    calm, failing = td.loads(CALM), td.loads(SYSTEM)
    predicted = td.predict(calm, by="theory")
    simulated = td.simulate(calm, replications=2, duration_s=20.0)
    return {
        "predict": predicted,
        "compare": td.compare(predicted, simulated),
        "validate": td.validate(predicted, simulated),
        "explain": td.explain(calm),
        "whatif": td.whatif(calm, "rate p x2"),
        "plan_targets": td.plan_targets(calm, **QUICK),
        "gate": td.gate(calm, target=0.99, simulate=False),
        "plan_admission": td.plan_admission(calm, "near", **QUICK),
        "plan_capacity": td.plan_capacity(calm, broker="hub", **QUICK),
        "plan_capacity of a mix": td.plan_capacity(calm, target=0.99, simulate=False),
        "plan_consumers": td.plan_consumers(td.loads(GROUP), target=0.9, seconds=2.0),
        "catch_up": td.catch_up(td.loads(GROUP), "w", stopped_s=2.0, replications=2),
        "plan_deadline": td.plan_deadline(calm, [0.9], simulate=False),
        "plan_homes": td.plan_homes(calm, who="near", **QUICK),
        "plan_scheme": td.plan_scheme(failing, target=0.5, seconds=0.5),
        "analyse": td.analyse(td.workload_of(calm)),
        "simulate_net": td.simulate_net(td.generate_net(td.workload_of(calm)), duration_s=20.0),
    }


@pytest.fixture(scope="module")
def made():
    return results()


NAMES = (
    "predict", "compare", "validate", "explain", "whatif", "gate", "plan_targets", "plan_admission",
    "plan_capacity", "plan_capacity of a mix", "plan_consumers", "catch_up",
    "plan_deadline", "plan_homes",
    "plan_scheme", "analyse", "simulate_net",
)  # fmt: skip


class Page(HTMLParser):
    """The tags and texts of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_shown_small_and_escaped(made, name):
    page = Page(made[name]._repr_html_())
    assert set(page.tags) <= {"p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.tags.count("tr") <= MOST_ROWS + 1
    assert page.tags.count("tr") >= 2
    assert page.tags.count("td") == page.tags.count("th") * (page.tags.count("tr") - 1)
    assert not re.search(r"\d\.0*[1-9]\d{4,}", " ".join(page.texts))  # no more digits than matter


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_result_goes_to_pandas_and_arrow_whole(made, name):
    result = made[name]
    frame, arrow = result.to_pandas(), result.to_arrow()
    assert len(frame) == arrow.num_rows > 0
    assert set(result.columns()) <= set(frame.columns)
    assert list(frame.columns) == arrow.column_names


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_result_draws_what_it_shows(made, name):
    ax = made[name].plot()
    rows = made[name]._rows()
    drawn = [bar.get_width() for bar in ax.patches]
    assert drawn == rows[made[name].columns()[1]].iloc[::-1].tolist()
    mpl.pyplot.close(ax.figure)


def test_the_worst_come_first_and_how_many_are_left_out_is_said():
    many = "".join(
        f"  s{number}: {{at: hub, wants: {{}}, lifetime: {number + 1}0ms}}\n"
        for number in range(20)
    )
    outcome = td.predict(td.loads(CALM + many), by="theory")
    html = outcome._repr_html_()
    assert f"{MOST_ROWS} of 22 rows" in html
    shares = [float(each) for each in re.findall(r"<tr><td>[^<]*</td><td>([\d.]+) %", html)]
    assert len(shares) == MOST_ROWS
    assert shares == sorted(shares)


def test_a_table_that_is_not_there_is_refused_by_name():
    outcome = td.predict(td.loads(CALM), by="theory")
    assert list(outcome.to_pandas("brokers")["broker"]) == ["hub", "<b>east"]
    with pytest.raises(td.TidingsError, match="no table 'bunnies'"):
        outcome.to_pandas("bunnies")


def test_changing_a_copy_changes_no_result():
    outcome = td.predict(td.loads(CALM), by="theory")
    outcome.to_pandas()["on_time"] = 0.0
    assert outcome.on_time > 0.0


def test_what_was_learnt_shows_its_numbers_and_draws_what_was_measured():
    system = td.loads(CALM)
    measured = td.predict(system, by="theory")
    empty = pd.DataFrame()
    row = ["brokers.<hub>", 0.123456789, 0.001, 9, "exponential", 0.5, "s", "", "traces", 0.0]
    learnt = td.Characterisation(
        system=system, measured=measured, waits=empty, quality=empty, coverage=empty,
        parameters=pd.DataFrame([row], columns=list(PARAMETER_COLUMNS)), clocks=empty,
        stationarity=empty, kinds={}, traffic=empty, dispersion=empty, laws={}, rates=empty,
    )  # fmt: skip
    assert "<td>brokers.&lt;hub&gt;</td><td>0.1235</td>" in learnt._repr_html_()
    ax = learnt.plot()
    assert len(ax.patches) == len(measured.subscribers)
    mpl.pyplot.close(ax.figure)


@pytest.mark.slow
def test_every_kind_of_result_is_tried_here(made):
    kinds, unseen = set(), [Shown]
    while unseen:
        below = unseen.pop().__subclasses__()
        kinds.update(each.__name__ for each in below)
        unseen += below
    assert kinds == {type(each).__name__ for each in made.values()} | {"Characterisation"}


def test_progress_elsewhere_than_in_a_notebook_goes_to_stderr(capsys):
    step = td.show_progress("predicting")
    step("as it is")
    assert capsys.readouterr().err == "predicting: as it is (0 s)\n"


@pytest.mark.parametrize("verb", ["predict", "simulate", "whatif", "explain", "gate", "svg"])
def test_who_gives_a_path_for_a_system_is_told_how_to_load_it(verb):
    with pytest.raises(td.TidingsError, match=r"td\.load"):
        getattr(td, verb)("shop.yaml")


def test_a_verb_is_itself_wherever_it_is_looked_up():
    assert pickle.loads(pickle.dumps(td.predict)) is td.predict
    assert list(inspect.signature(td.predict).parameters)[:2] == ["system", "options"]
