"""The kernel's counts against those of a simulator written to be obvious, to the last one."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.model import delay_grid
from tidings.model.reading import loads
from tidings.simulation.kernel_layout import KERNEL_CAUSES
from tidings.simulation.network import compile_system
from tidings.simulation.run import replicate
from tidings.simulation.tally import find_units


def agree(text, twin, *, replication, duration_s, least_wanted):
    """Run both on a system and compare all counts and delays; the kernel's losses by cause."""
    system = loads(text)
    options = {"seed": 5, "replication": replication, "warmup_s": 1.0, "duration_s": duration_s}
    counts = replicate(system, **options)
    expected, delays = twin(system, **options)
    units = find_units(compile_system(system))
    for index, subscriber in enumerate(system.subscribers):
        unit = units.of_subscriber[index]
        mine = units.pair_unit == unit
        found = {
            "wanted": counts.wanted[mine].sum(),
            "delivered": counts.delivered[mine].sum(),
            "on_time": counts.on_time[mine].sum(),
        }
        found |= dict(zip(KERNEL_CAUSES, counts.lost[unit], strict=True))
        wanted = expected[subscriber.name]
        assert found == {key: wanted[key] for key in found}, subscriber.name
        assert found["wanted"] > least_wanted
        assert found["wanted"] == found["delivered"] + counts.lost[unit].sum()
        bins = np.bincount(delay_grid.bin_of(delays[subscriber.name]), minlength=delay_grid.BINS)
        assert counts.curves[units.curves[unit]].sum(axis=0).tolist() == bins.tolist()
        assert counts.delay_sum_s[mine].sum() == pytest.approx(
            delays[subscriber.name].sum(), rel=1e-12
        )
    return dict(zip(KERNEL_CAUSES, counts.lost.T, strict=True))
