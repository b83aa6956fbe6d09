"""Of two ways to learn of a link, the one that saw more is believed."""

from __future__ import annotations

from dataclasses import replace

from tidings.characterisation.channels import FittedChannel, surest
from tidings.characterisation.fitting import fit_law
from tidings.characterisation.samples import sample_of

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
