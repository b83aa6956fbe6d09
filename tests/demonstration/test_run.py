"""The main job from end to end: reality played, learnt back, predicted, simulated, shown."""

import json

import pytest

from tidings.demonstration.run import demonstrate
from tidings.demonstration.sample_system import market_and_weather
from tidings.errors import InvalidInputError
from tidings.model.outcome_files import load_outcome
from tidings.model.reading import load

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def result(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    return demonstrate(market_and_weather(), spark, folder=folder, minutes=20, seed=4)


def test_measured_predicted_and_simulated_agree(result):
    assert {check.name for check in result.checks} == {"mean_absolute", "within_2se", "parameters"}
    assert all(check.passed for check in result.checks), [c.text for c in result.checks]


def test_every_learnt_parameter_is_known_to_be_true_or_not(result):
    learnt = result.parameters
    assert learnt["truth"].notna().all()
    certain = learnt["standard_error"] == 0  # the delay of a perfect link is 0 every time
    assert (learnt.loc[certain, "estimate"] == learnt.loc[certain, "truth"]).all()
    services = learnt[learnt["path"].str.endswith(".service")]
    assert set(services["family"]) == {"exponential"}
    # Sharp enough to notice a service time that is off by a twentieth.
    assert (5 * services["standard_error"] < 0.05 * services["estimate"]).all()


def test_the_learnt_system_is_the_true_one_in_all_but_numbers(result):
    truth, learnt = load(result.folder / "system.yaml"), load(result.folder / "fitted.yaml")
    assert {b.name for b in learnt.brokers} == {b.name for b in truth.brokers}
    ends = [{frozenset(link.between) for link in each.links} for each in (truth, learnt)]
    assert ends[0] == ends[1]
    wants = [{s.name: (s.at, s.wants) for s in each.subscribers} for each in (truth, learnt)]
    assert wants[0] == wants[1]
    assert learnt.standard_errors


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
    assert json.loads((result.folder / "demo.json").read_text())["checks"]
    page = result.page.read_text()
    assert "fund-war-09" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_run_that_dies_leaves_nothing_and_a_strange_folder_is_not_touched(spark, tmp_path):
    def die(step):
        if "predicting" in step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demonstrate(market_and_weather(), spark, folder=tmp_path / "out", minutes=0.5, progress=die)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(InvalidInputError, match="not of ours"):
        demonstrate(market_and_weather(), spark, folder=tmp_path / "mine", minutes=0.5)
