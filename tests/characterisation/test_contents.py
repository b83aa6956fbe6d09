from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit import contents
from tidings.characterisation.fit.contents import (
    lifetimes,
    read_contents,
    shared_bins,
    wanted_by_batch,
    with_exact_lifetimes,
)
from tidings.errors import InvalidTracesError
from tidings.model.delay_grid import bin_of
from tidings.model.filters import as_filter, matches
from tidings.model.laws import Deterministic, Exponential


def rows_of(values_s: list[float | None]) -> pd.DataFrame:
    """Rows as the statistic of publications gives them, of events with these lifetimes."""
    frame = pd.DataFrame({"s": pd.array(values_s, dtype="Float64")})
    known = frame["s"].astype(float)
    frame["lifetime_bin"] = np.where(known.isna(), np.nan, bin_of(known.fillna(1.0).to_numpy()))
    frame["ns"] = known * 1e9
    grouped = frame.groupby("lifetime_bin", dropna=False)
    return grouped.agg(
        rows=("ns", "size"),
        lifetime_total_s=("s", "sum"),
        least_lifetime_ns=("ns", "min"),
        most_lifetime_ns=("ns", "max"),
    ).reset_index()


def test_a_few_lifetimes_stay_exact_and_for_ever_is_one_of_them():
    found = lifetimes(rows_of([0.25, 0.25, 2.0, None]))
    assert found == [
        (1.0, None),
        (2.0, Deterministic(value_s=0.25)),
        (1.0, Deterministic(value_s=2.0)),
    ]


def by_content(publisher: str, values_s: list[float | None], *, exact: bool) -> pd.DataFrame:
    rows = rows_of(values_s) if not exact else pd.concat([rows_of([each]) for each in values_s])
    return rows.assign(statistic="contents", publisher=publisher, content="{}")


def test_lifetimes_in_one_bin_are_looked_at_again_where_they_may_be_few():
    spread = list(np.geomspace(0.1, 10.0, 99))
    rows = pd.concat(
        [
            by_content("close", [1.01, 1.02, 5.0, None], exact=False),
            by_content("apart", [1.0, 5.0], exact=False),
            by_content("spread", spread, exact=False),
        ]
    )
    assert shared_bins(rows).to_numpy().tolist() == [["close", "{}"]]


def test_few_exact_lifetimes_replace_their_bins_and_many_do_not():
    few, many = [1.01, 1.02, 1.02, None], list(np.linspace(1.01, 1.04, 9))
    assert len(set(bin_of(many))) == 1
    rows = pd.concat([by_content(n, v, exact=False) for n, v in (("few", few), ("many", many))])
    exact = pd.concat([by_content(n, v, exact=True) for n, v in (("few", few), ("many", many))])
    found = with_exact_lifetimes(rows, exact)
    assert found["rows"].sum() == rows["rows"].sum()
    assert lifetimes(found[found["publisher"] == "few"]) == [
        (1.0, None),
        (1.0, Deterministic(value_s=1.01)),
        (2.0, Deterministic(value_s=1.02)),
    ]
    ((count, law),) = lifetimes(found[found["publisher"] == "many"])
    assert count == 9
    assert not isinstance(law, Deterministic)


@pytest.mark.statistical
def test_drawn_lifetimes_become_a_law():
    drawn = np.random.default_rng(4).exponential(0.03, 20_000)
    ((count, law),) = lifetimes(rows_of(list(drawn)))
    assert count == 20_000
    assert isinstance(law, Exponential)
    assert law.mean_s == pytest.approx(drawn.mean(), rel=1e-9)


def test_what_is_wanted_is_what_matches_event_by_event():
    rng = np.random.default_rng(6)
    texts = ['{"a":1}', '{"a": 1.0}', '{"a":2}', '{"b":"x"}', "{}", "broken"]
    rows = pd.DataFrame(
        {
            "publisher": rng.choice(["p", "q"], 300),
            "content": rng.choice(texts, 300),
            "batch": rng.choice([0, 1, 2, np.nan], 300),
            "rows": rng.integers(1, 9, 300),
        }
    )
    known = read_contents(texts)
    assert len(known.events) == 4
    filters = [as_filter({}), as_filter({"a": {"below": 2}}), as_filter([{"a": 2}, {"b": "x"}])]
    found = wanted_by_batch(rows, known, filters, 3)
    for publisher in "pq":
        for f, wants in enumerate(filters):
            for batch in range(3):
                expected = sum(
                    row.rows
                    for row in rows.itertuples()
                    if row.publisher == publisher
                    and row.batch == batch
                    and row.content != "broken"
                    and matches(wants, known.events[known.number_of[row.content]])
                )
                assert found[publisher][f, batch] == expected


def test_contents_that_all_differ_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(contents, "MOST_CONTENTS", 2)
    with pytest.raises(InvalidTracesError, match=r"3 distinct contents.*ids and time stamps"):
        read_contents([f'{{"id":{i}}}' for i in range(3)])
