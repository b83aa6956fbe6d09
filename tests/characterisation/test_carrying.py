"""What is carried over from old parts stands for them: later ones count the same."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count import carrying
from tidings.characterisation.count.carrying import PastChanges, down_since, is_in_order
from tidings.characterisation.count.store import (
    CHANGES,
    Catalogue,
    StorePart,
    new_folder_name,
    save_partial,
)
from tidings.characterisation.statistics import STATISTICS, Partial
from tidings.traces.lives import lives

SECOND_NS = 10**9
BEGIN_NS = 1_700_000_000 * SECOND_NS
PART_S = 10
MARGIN_S = 1.0


def tenth_ns(at_s):
    """The tenth of a second that a moment lies in; rounding up would put some in the next part."""
    return BEGIN_NS + math.floor(10.0 * at_s) * SECOND_NS // 10


def steps(rng, begin_s, names):
    """Subscriptions that overlap, are begun again, end unknown, and come at the same moment."""
    rows = []
    for name in names:
        for at in np.sort(rng.uniform(begin_s, begin_s + PART_S, 6)):
            action = ("subscribe", "unsubscribe")[rng.integers(2)]
            at_ns = tenth_ns(at)
            text = f'{{"t":{rng.integers(2)}}}' if action == "subscribe" else None
            rows.append((f"{name}-{rng.integers(3)}", name, "hub", action, at_ns, text))
    columns = ["subscription", "subscriber", "broker", "action", "at_ns", "filter"]
    return pd.DataFrame(rows, columns=columns)


def changes(rng, begin_s, column, states, names):
    """Changes, some of which repeat the state or stand there twice; bad rows too."""
    rows = [
        (name, states[rng.integers(2)], tenth_ns(at))
        for name in names
        for at in rng.uniform(begin_s, begin_s + PART_S, 5)
    ]
    found = pd.DataFrame(rows, columns=[column, "state", "at_ns"])
    bad = found.head(1).assign(**{column: ""})
    return pd.concat([found, found.iloc[::4], bad], ignore_index=True)


def part_at(store, number, seed, begin_s):
    """A part of a store of which only changes are there; those who change are not always all."""
    rng = np.random.default_rng([seed, number])
    names = [name for name in "abcd" if rng.random() < 0.7]
    tables = {
        "subscriptions": steps(rng, begin_s, names),
        "states": changes(rng, begin_s, "component", ("up", "down"), names),
        "sessions": changes(rng, begin_s, "peer", ("connected", "disconnected"), names),
    }
    folder = new_folder_name()
    subscribed = tables["subscriptions"]
    known = subscribed.groupby(["subscriber", "broker", "action", "filter"], dropna=False)
    counted = known["at_ns"].agg(rows="size", first_ns="min", last_ns="max").reset_index()
    counted = counted.assign(reason=None, duplicates=0)
    save_partial(store / folder, Partial(tables={"subscriptions": counted}))
    for name, rows in tables.items():
        (store / folder / CHANGES / name).mkdir(parents=True)
        rows.to_parquet(store / folder / CHANGES / name / "0.parquet", index=False)
    return StorePart(
        folder=folder,
        from_ns=BEGIN_NS + begin_s * SECOND_NS,
        until_ns=BEGIN_NS + (begin_s + PART_S) * SECOND_NS,
        source="planted",
        tables=tuple(tables),
    )


def cells(name, table):
    keys = [key for key in STATISTICS[name].keys if key in table.columns]
    table = table.copy()
    table[keys] = table[keys].astype(object).where(table[keys].notna(), None).astype(str)
    return table.sort_values(keys).set_index(keys).astype(float)


def alive(frame, from_ns):
    """Who has which filter from when until when, of lives that end after a moment."""
    rows = lives(frame).toPandas()
    rows = rows[~(rows["unsubscribed_ns"] <= from_ns)]
    keys = ["subscriber", "subscription", "filter", "unsubscribed_ns"]
    found = rows.groupby(keys, dropna=False)["subscribed_ns"].min()
    return {tuple(map(str, each)) for each in found.reset_index().itertuples(index=False)}


def compared(spark, store, parts, cuts):
    """Count all parts at once, and with what is carried over at each of some cuts."""
    plain = PastChanges(session=spark, store=store, carried=None, parts=parts)
    carried, begin = None, 0
    for cut in cuts:
        past = PastChanges(session=spark, store=store, carried=carried, parts=parts[begin:cut])
        carried, begin = past.carry(MARGIN_S), cut
    small = PastChanges(session=spark, store=store, carried=carried, parts=parts[begin:])
    found, whole = small.periods(), plain.periods()
    assert found.keys() == whole.keys() == carrying.PERIODS.keys()
    for name in whole:
        pd.testing.assert_frame_equal(
            cells(name, found[name]), cells(name, whole[name]), rtol=1e-12, check_like=True
        )
    from_ns = carried.until_ns - round(MARGIN_S * 1e9)
    assert alive(small.steps(), from_ns) == alive(plain.steps(), from_ns)
    keys = STATISTICS["subscriptions"].keys
    a, b = (each.subscriptions().sort_values([*keys]) for each in (small, plain))
    pd.testing.assert_frame_equal(a.reset_index(drop=True), b.reset_index(drop=True))
    if "states" not in carrying.PERIODS:
        return
    until_ns = parts[-1].until_ns
    a, b = (
        {(each.component, each.state, each.at_ns) for each in past.states(until_ns).collect()}
        for past in (small, plain)
    )
    assert a == b == last_states(store, parts, until_ns)
    assert small.states(until_ns + 1) is None


def last_states(store, parts, at_ns):
    """The states of components that changed in the last stretch of time."""
    begins = [
        each for each in range(1, len(parts)) if parts[each - 1].until_ns != parts[each].from_ns
    ]
    since = parts[max(begins, default=0) :]
    rows = pd.concat([pd.read_parquet(store / each.folder / CHANGES / "states") for each in since])
    rows = rows[rows["component"] != ""].sort_values(["at_ns", "state"])
    return {(name, own["state"].iloc[-1], at_ns) for name, own in rows.groupby("component")}


def test_components_that_are_down_are_known_without_counting(tmp_path):
    parts = [part_at(tmp_path, number, 3, begin) for number, begin in enumerate((0, 10, 40, 50))]
    catalogue = Catalogue(margin_s=MARGIN_S, parts=tuple(parts))
    found = down_since(tmp_path, catalogue)
    states = last_states(tmp_path, parts, 0)
    assert set(found) == {name for name, state, _ in states if state == "down"} != set()
    assert len(states) > len(found)
    rows = pd.concat(
        [pd.read_parquet(tmp_path / each.folder / CHANGES / "states") for each in parts[2:]]
    )
    for name, since_ns in found.items():
        own = rows[rows["component"] == name].sort_values(["at_ns", "state"])
        assert set(own.loc[own["at_ns"] > since_ns, "state"]) <= {"down"}
        assert "down" in set(own.loc[own["at_ns"] == since_ns, "state"])
        earlier = own[own["at_ns"] < since_ns]
        assert earlier.empty or earlier["state"].iloc[-1] == "up"
    assert down_since(tmp_path, Catalogue(margin_s=MARGIN_S)) == {}


@pytest.mark.spark
@pytest.mark.usefixtures("few_rows")
def test_what_is_carried_over_stands_for_the_parts_before(spark, tmp_path, monkeypatch):
    """Of subscriptions; what is as plain is left to the nights."""
    for name in ("PERIODS", "STANDING"):
        monkeypatch.setattr(carrying, name, {"stays": getattr(carrying, name)["stays"]})
    parts = [part_at(tmp_path, number, 1, number * PART_S) for number in range(2)]
    assert is_in_order(tmp_path, parts)
    compared(spark, tmp_path, parts, [1])
    early = part_at(tmp_path, 2, 1, 0)  # whose changes are of another time than it says
    wrong = StorePart(
        folder=early.folder, from_ns=parts[1].until_ns, until_ns=parts[1].until_ns + 1,
        source="", tables=(),
    )  # fmt: skip
    assert not is_in_order(tmp_path, [*parts, wrong])


@pytest.mark.nightly
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("seed", range(5))
def test_what_is_carried_over_again_and_again_stands_for_all(spark, tmp_path, seed):
    """With a gap between the third part and the fourth, which lies behind or before a cut."""
    begins = [0, 10, 20, 50, 60, 70]
    parts = [part_at(tmp_path, *each) for each in zip(range(6), [seed] * 6, begins, strict=True)]
    assert is_in_order(tmp_path, parts)  # nothing else is carried over
    for cuts in ([1, 2, 4], [3, 5], [2, 6]):
        compared(spark, tmp_path, parts, cuts)
