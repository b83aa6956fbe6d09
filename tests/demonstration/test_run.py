"""The main job from end to end: reality played, learnt back, predicted, simulated, shown."""

import json

import pytest

from tidings.demonstration.run import check_place, demonstrate
from tidings.demonstration.sample_system import market_and_weather
from tidings.errors import InvalidInputError
from tidings.model.outcome_files import load_outcome
from tidings.model.reading import load

OURS = {"demo.json": '{"tidings_demo": 1}', "report.html": ""}


@pytest.fixture(scope="module")
def result(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    return demonstrate(market_and_weather(), spark, folder=folder, minutes=20, seed=4)


@pytest.mark.spark
@pytest.mark.slow
def test_measured_predicted_and_simulated_agree(result):
    assert {check.name for check in result.checks} == {"mean_absolute", "within_2se", "parameters"}
    assert all(check.passed for check in result.checks), [c.text for c in result.checks]


@pytest.mark.spark
@pytest.mark.slow
def test_every_learnt_parameter_is_known_to_be_true_or_not(result):
    learnt = result.parameters
    assert learnt["truth"].notna().all()
    certain = learnt["standard_error"] == 0  # the delay of a perfect link is 0 every time
    assert (learnt.loc[certain, "estimate"] == learnt.loc[certain, "truth"]).all()
    services = learnt[learnt["path"].str.endswith(".service")]
    assert set(services["family"]) == {"exponential"}
    # Sharp enough to notice a service time that is off by a twentieth.
    assert (5 * services["standard_error"] < 0.05 * services["estimate"]).all()


@pytest.mark.spark
@pytest.mark.slow
def test_the_page_says_what_to_do_first(result):
    best = result.budget.best
    assert best.change == "speed 'frankfurt' x2"
    assert 0.03 < best.gain < 0.1
    head = result.page.read_text(encoding="utf-8").split("Where in the network")[0]
    assert f"<dt>Do</dt><dd>{best.change}".replace("'", "&#39;") in "".join(head.split("\n"))


@pytest.mark.spark
@pytest.mark.slow
def test_the_learnt_system_is_the_true_one_in_all_but_numbers(result):
    truth, learnt = load(result.folder / "system.yaml"), load(result.folder / "fitted.yaml")
    assert {b.name for b in learnt.brokers} == {b.name for b in truth.brokers}
    ends = [{frozenset(link.between) for link in each.links} for each in (truth, learnt)]
    assert ends[0] == ends[1]
    wants = [{s.name: (s.at, s.wants) for s in each.subscribers} for each in (truth, learnt)]
    assert wants[0] == wants[1]
    assert learnt.standard_errors


@pytest.mark.spark
@pytest.mark.slow
def test_the_folder_holds_everything_and_nothing_else(result):
    names = {path.name for path in result.folder.iterdir()}
    outcomes = {"measured.json", "predicted.json", "simulated.json"}
    assert names == outcomes | {"traces", "system.yaml", "fitted.yaml", "report.html", "demo.json"}
    assert [path.name for path in result.folder.parent.iterdir()] == ["out"]
    for name in outcomes:
        outcome = load_outcome(result.folder / name)
        assert outcome.source == name.removesuffix(".json")
        assert len(outcome.subscribers) == 100
        rest = outcome.subscribers.filter(like="lost_").sum(axis=1)
        assert (abs(outcome.subscribers["delivered"] + rest - 1.0) < 1e-9).all()
    marker = json.loads((result.folder / "demo.json").read_text())
    assert marker["tidings_demo"] == 1
    assert marker["checks"]
    check_place(result.folder)  # may be replaced
    page = result.page.read_text()
    assert "fund-war-09" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_that_dies_leaves_nothing_and_a_strange_folder_is_not_touched(spark, tmp_path):
    def die(step):
        if not step.startswith("playing"):  # the traces are there already
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demonstrate(market_and_weather(), spark, folder=tmp_path / "out", minutes=0.5, progress=die)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(InvalidInputError, match="not made by tidings demo"):
        demonstrate(market_and_weather(), spark, folder=tmp_path / "mine", minutes=0.5)


def test_only_a_folder_that_is_wholly_ours_may_be_replaced(tmp_path):
    strange = {
        "empty": {},
        "another_marker": {**OURS, "demo.json": '{"checks": []}'},
        "a_later_version": {**OURS, "demo.json": '{"tidings_demo": 2}'},
        "a_list": {**OURS, "demo.json": "[1]"},
        "no_json": {**OURS, "demo.json": "{"},
        "no_text": {**OURS, "demo.json": "\x00"},
        "more_inside": {**OURS, "thesis.tex": "years of work"},
        "hidden_inside": {**OURS, ".git": ""},
    }
    for name, files in {"ours": OURS, **strange}.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    check_place(tmp_path / "ours")
    check_place(tmp_path / "not" / "there")
    for name, files in strange.items():
        with pytest.raises(
            InvalidInputError, match=f"{name} exists and was not made by tidings demo"
        ):
            check_place(tmp_path / name)
        assert {path.name for path in (tmp_path / name).iterdir()} == set(files)
