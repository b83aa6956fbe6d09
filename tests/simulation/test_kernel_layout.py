from __future__ import annotations

import numpy as np
import pytest

from tidings.kernels import calendar
from tidings.simulation import kernel_layout
from tidings.simulation.kernel_layout import LAYOUT

RECORDS = {
    name: kind
    for module in (kernel_layout, calendar)
    for name, kind in vars(module).items()
    if isinstance(kind, np.dtype) and kind.names
}


@pytest.mark.parametrize("name", RECORDS)
def test_no_field_hides_behind_a_method_of_numpys_records(name):
    """Such a field would read as the method when the kernel runs without compilation."""
    assert [field for field in RECORDS[name].names if hasattr(np.recarray, field)] == []


def test_a_world_points_to_its_tables_and_keeps_its_numbers():
    tables = {name: np.zeros(3, dtype=kind) for name, kind in LAYOUT.tables.items()}
    tables["streams"] = np.ones((2, 4), dtype=np.uint64)
    world = LAYOUT.make({"now": 2.5, "fan_out": 7}, tables)
    assert world.record[0].now == 2.5
    assert world.record[0].fan_out == 7
    for name in LAYOUT.tables:
        assert world.record[0][f"{name}_address"] == world.tables[name].ctypes.data
        assert world.record[0][f"{name}_length"] == len(tables[name])
    more = np.zeros(9, dtype=LAYOUT.tables["copies"])
    world.put("copies", more)
    assert world.record[0]["copies_length"] == 9
