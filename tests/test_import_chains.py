"""How many modules deep imports go."""

from __future__ import annotations

from functools import cache

import grimp
import pytest

LONGEST = {
    "tidings.theory": 8,
    "tidings.prediction": 4,
    "tidings.characterisation": 9,
    "tidings.simulation": 11,
    "tidings.petri": 7,
    "tidings.testbed": 10,
    "tidings.planning": 8,
    "tidings.reporting": 4,
}


@pytest.mark.parametrize("room", LONGEST)
def test_chains_of_imports_stay_short(room):
    graph = grimp.build_graph("tidings", exclude_type_checking_imports=True)
    inside = {module for module in graph.modules if module.startswith(f"{room}.")}

    @cache
    def chain(module: str) -> tuple[str, ...]:
        below = graph.find_modules_directly_imported_by(module) & inside
        return (module, *max((chain(each) for each in sorted(below)), key=len, default=()))

    longest = max((chain(module) for module in sorted(inside)), key=len)
    assert len(longest) <= LONGEST[room], " <- ".join(reversed(longest))
