"""What makes a row a copy of another; what copies change is tested with every statistic."""

from __future__ import annotations

from tidings.characterisation.count.cells import COPIES, copies_among, each_row_once
from tidings.model.trace_tables import HOPS, TRACE_TABLES

S = 1_000_000_000


def test_copies_are_the_same_in_every_column(frame, few_rows):
    ddl = TRACE_TABLES["hops"].ddl.replace(" NOT NULL", "")
    row = ("e1", "hub", "p", S, None, 2 * S, ["east"])
    others = [
        ("e1", "hub", "p", S, S, 2 * S, ["east"]),
        ("e1", "hub", "p", S, None, 2 * S, None),
        ("e1", "hub", "q", S, None, 2 * S, ["east"]),
    ]
    bad = ("", "hub", "p", S, None, 2 * S, ["east"])
    rows = frame([row, *others, row, bad, bad, row], ddl)
    found = copies_among(rows, HOPS)
    assert ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in found.schema) == COPIES
    assert found.first()["copies"] == 2
    assert each_row_once(rows).count() == 5
    assert copies_among(rows.limit(0), HOPS).first()["copies"] == 0
