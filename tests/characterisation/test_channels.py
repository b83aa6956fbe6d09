"""Of two ways to learn of a link, the one that saw more is believed."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.channels import FittedChannel, LossRuns, surest
from tidings.characterisation.fit.fitting import _as_delivered
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.samples import sample_of

FEW = FittedChannel(tried=60, lost=9, delay=fit_law(sample_of([0.03] * 51)))
MANY = FittedChannel(tried=6000, lost=600, delay=fit_law(sample_of([0.02] * 5400)))
WAY = ("a", "b")


def test_few_probes_give_way_to_many_crossings_and_the_other_way_round():
    assert surest({WAY: MANY}, {WAY: FEW}) == {WAY: MANY}
    assert surest({WAY: FEW}, {WAY: MANY}) == {WAY: MANY}
    assert surest({WAY: FEW}, {}) == surest({}, {WAY: FEW}) == {WAY: FEW}


def test_losses_come_from_whoever_can_tell_them():
    (found,) = surest({WAY: replace(MANY, lost=None)}, {WAY: FEW}).values()
    assert (found.tried, found.lost) == (60, 9)
    assert found.delay == MANY.delay
    assert found.reliability == 0.85
    assert 0.04 < found.lost_se < 0.05


def chain_of_losses(rng, reliability, burst, chains=400, length=5000):
    """Losses of a two-state chain, whose runs of losses have a mean length: [chain, probe]."""
    stays = 1.0 - 1.0 / burst
    begins = (1.0 - stays) * (1.0 - reliability) / reliability
    lost = np.empty((chains, length), dtype=bool)
    lost[:, 0] = rng.random(chains) > reliability
    for probe in range(1, length):
        chance = np.where(lost[:, probe - 1], stays, begins)
        lost[:, probe] = rng.random(chains) < chance
    return lost


@pytest.mark.statistical
@pytest.mark.parametrize(("reliability", "burst"), [(0.9, 1.0 / 0.9), (0.97, 4.0), (0.9, 10.0)])
def test_losses_in_a_row_are_as_sure_as_they_say(reliability, burst):
    lost = chain_of_losses(np.random.default_rng(3), reliability, burst)
    off = []
    for row in lost:
        after, now = row[:-1], row[1:]
        runs = LossRuns(
            following=now.size,
            lost=int(now.sum()),
            after_loss=int(after.sum()),
            lost_after_loss=int((after & now).sum()),
        )
        found = FittedChannel(tried=row.size, lost=int(row.sum()), delay=None, runs=runs)
        off.append((found.reliability - reliability) / found.lost_se)
    # The spread of 400 of them is known to 3.5 %; runs themselves are estimated, too.
    assert np.std(off) == pytest.approx(1.0, abs=0.15)
    assert abs(np.mean(off)) < 0.35


def test_rows_that_could_not_be_used_make_losses_less_sure():
    found = replace(MANY, spoilt=0.05)
    assert found.reliability == MANY.reliability
    assert found.lost_se == pytest.approx(math.hypot(MANY.lost_se, 0.05), rel=1e-15)
    assert surest({WAY: found}, {WAY: FEW})[WAY].lost_se == FEW.lost_se
    clearer = replace(MANY, spoilt=0.01)
    assert surest({WAY: clearer}, {WAY: FEW})[WAY].lost_se == clearer.lost_se


def test_a_probed_link_to_a_subscriber_loses_what_spoilt_deliveries_lose():
    """What is predicted of those who come and go is then what is measured. Not between brokers."""
    seen = SimpleNamespace(
        hops=pd.DataFrame({"broker": ["hub", "edge"]}),
        deliveries=pd.DataFrame({"subscriber": ["ann", None]}),
    )
    probed = {
        (source, target): FittedChannel(tried=1000, lost=100, delay=None)
        for source, target in (("hub", "edge"), ("edge", "ann"), ("bob", "hub"))
    }
    found = _as_delivered(probed, seen, {"deliveries": 0.02, "hops": 0.5})
    assert {arc: each.lost for arc, each in found.items()} == {
        ("hub", "edge"): 100, ("edge", "ann"): 118, ("bob", "hub"): 100,
    }  # fmt: skip
    assert found["edge", "ann"].spoilt == 0.02
    assert _as_delivered(probed, seen, {}) == probed
