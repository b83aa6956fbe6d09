from __future__ import annotations

from tidings.reporting.plans import capacity_table


def sizes_shown(choice, sizes, best=64):
    row = {"on_time": 0.9, "satisfied": 1.0, "margin": 0.0, "worst": "edge"}
    found = capacity_table(
        {
            "what": "speed",
            "choice": choice,
            "best": best,
            "options": [{"size": size, **row} for size in sizes],
        }
    )
    first, *_, marks = found.columns
    shown = [float(cell) for cell in first.cells]
    marked = [size for size, mark in zip(shown, marks.cells, strict=True) if mark == "◀"]
    return shown, marked, found.caption


def test_sizes_around_the_answer_are_shown_with_the_present_and_the_largest():
    sizes = [1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.1, 1.3, 1.7, 2.8, 8, 64]
    shown, marked, caption = sizes_shown(1.05, sizes)
    assert shown == [1, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.1, 64]
    assert marked == [1.05]
    assert "9 of 14 sizes" in caption


def test_where_no_size_is_enough_those_around_the_best_are_shown():
    shown, marked, _ = sizes_shown(None, [1, 2, 3, 4, 5, 6, 7, 8], best=2)
    assert shown == [1, 2, 3, 4, 5, 8]
    assert marked == []


def test_a_few_sizes_are_all_shown():
    shown, _, caption = sizes_shown(4, [1, 2, 4])
    assert shown == [1, 2, 4]
    assert "sizes" not in caption
