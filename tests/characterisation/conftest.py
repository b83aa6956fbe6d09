"""Traces with planted parameters: three brokers in a row, drawn and queued with NumPy alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dirty_days import WINDOW_S, dirty, handled, write_days
from tidings.model.laws import Deterministic, Exponential, Gamma, Law, LogNormal, Uniform

EPOCH_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000


@dataclass
class Planted:
    """The truth behind the traces, and the traces as pandas tables."""

    window_s: float = 240.0
    probes: int = 5000  # of every link
    services: dict[str, Law] = field(
        default_factory=lambda: {
            "west": Exponential(mean_s=0.004),
            "hub": Uniform(low_s=0.001, high_s=0.007),
            "east": LogNormal(mean_s=0.005, scv=2.0),
        }
    )
    # (source, target): delay, reliability
    links: dict[tuple[str, str], tuple[Law, float]] = field(
        default_factory=lambda: {
            ("west", "hub"): (Exponential(mean_s=0.010), 0.98),
            ("hub", "west"): (Exponential(mean_s=0.012), 0.97),
            ("hub", "east"): (Deterministic(value_s=0.005), 0.995),
            ("east", "hub"): (Gamma(mean_s=0.008, shape=3.0), 1.0),
            ("ticker", "west"): (Uniform(low_s=0.001, high_s=0.002), 1.0),
            ("tower", "west"): (Exponential(mean_s=0.001), 0.99),
            ("west", "carol"): (Exponential(mean_s=0.002), 1.0),
            ("hub", "bob"): (Gamma(mean_s=0.004, shape=2.0), 0.99),
            ("east", "alice"): (Exponential(mean_s=0.003), 0.98),
        }
    )
    every: dict[str, Law] = field(
        default_factory=lambda: {
            "ticker": Exponential(mean_s=1 / 60),
            "tower": Gamma(mean_s=1 / 40, shape=4.0),
        }
    )
    contents: dict[str, list[tuple[float, dict[str, object], float | None]]] = field(
        default_factory=lambda: {
            "ticker": [
                (0.6, {"price": 12, "topic": "stock"}, 0.050),
                (0.2, {"price": 40, "topic": "stock"}, 0.050),
                (0.2, {"topic": "fx"}, 0.050),
            ],
            "tower": [
                (0.5, {"station": "ZRH", "topic": "wind"}, 0.030),
                (0.5, {"station": "GVA", "topic": "wind"}, None),
            ],
        }
    )
    # name: home, filter as a document, filter as a Python test
    wants: dict[str, tuple[str, object]] = field(
        default_factory=lambda: {
            "alice": ("east", {"topic": "stock", "price": {"below": 20}}),
            "bob": ("hub", [{"topic": "stock"}, {"topic": "wind"}]),
            "carol": ("west", {"topic": {"one_of": ["fx", "wind"]}}),
        }
    )
    size_bytes: dict[str, int | None] = field(default_factory=lambda: {"ticker": 64, "tower": None})
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)


BEHIND = {"west": ("hub", ("bob", "alice")), "hub": ("east", ("alice",))}
TESTS = {
    "alice": lambda e: e.get("topic") == "stock" and e.get("price", 99) < 20,
    "bob": lambda e: e.get("topic") in ("stock", "wind"),
    "carol": lambda e: e.get("topic") in ("fx", "wind"),
}


def draw(law: Law, rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws of a law without the law's own sampler, where NumPy has one."""
    match law:
        case Exponential():
            return rng.exponential(law.mean_s, size)
        case Uniform():
            return rng.uniform(law.low_s, law.high_s, size)
        case Gamma():
            return rng.gamma(law.shape, law.mean_s / law.shape, size)
        case LogNormal():
            sigma2 = np.log1p(law.scv)
            return rng.lognormal(np.log(law.mean_s) - sigma2 / 2, np.sqrt(sigma2), size)
        case Deterministic():
            return np.full(size, law.value_s)
    raise AssertionError(law)


def plant(seed: int, **changes: object) -> Planted:
    """Draw everything, queue it by Lindley's recursion, and write down what brokers would see."""
    rng = np.random.default_rng(seed)
    truth = Planted(**changes)
    published = publish(truth, rng)
    hops, deliveries = [], []
    sender = published["publisher"].to_numpy()
    start = published["published_ns"].to_numpy() - EPOCH_NS
    arriving = pd.DataFrame({"row": published.index, "came_from": sender, "left": start})
    parsed = {text: json.loads(text) for text in published["content"].unique()}
    contents = [parsed[text] for text in published["content"]]
    for broker in ("west", "hub", "east"):
        parts = []
        for source, group in arriving.groupby("came_from"):
            delay, kept = truth.links[str(source), broker]
            ok = group[rng.random(len(group)) < kept]
            travelled = np.rint(draw(delay, rng, len(ok)) * SECOND_NS).astype(np.int64)
            parts.append(ok.assign(arrived=ok["left"] + travelled))
        here = pd.concat(parts).sort_values("arrived", kind="stable").reset_index(drop=True)
        work = np.rint(draw(truth.services[broker], rng, len(here)) * SECOND_NS).astype(np.int64)
        started, left = serve(here["arrived"].to_numpy(), work)
        onward, behind = BEHIND.get(broker, (None, ()))
        goes_on = np.array(
            [any(TESTS[name](contents[row]) for name in behind) for row in here["row"]], dtype=bool
        )
        hops.append(
            pd.DataFrame(
                {
                    "event": published["event"].to_numpy()[here["row"]],
                    "broker": broker,
                    "came_from": here["came_from"],
                    "arrived_ns": here["arrived"] + EPOCH_NS,
                    "started_ns": started + EPOCH_NS,
                    "left_ns": left + EPOCH_NS,
                    "sent_to": [[onward] if on else [] for on in goes_on],
                }
            )
        )
        for name, (home, _) in truth.wants.items():
            if home != broker:
                continue
            delay, kept = truth.links[broker, name]
            wanted = np.array([TESTS[name](contents[row]) for row in here["row"]], dtype=bool)
            wanted &= rng.random(len(here)) < kept
            travelled = np.rint(draw(delay, rng, int(wanted.sum())) * SECOND_NS).astype(np.int64)
            deliveries.append(
                pd.DataFrame(
                    {
                        "event": published["event"].to_numpy()[here["row"][wanted]],
                        "subscriber": name,
                        "broker": broker,
                        "received_ns": left[wanted] + travelled + EPOCH_NS,
                    }
                )
            )
        arriving = pd.DataFrame(
            {"row": here["row"][goes_on], "came_from": broker, "left": left[goes_on]}
        )
    truth.tables = {
        "publications": published,
        "hops": pd.concat(hops, ignore_index=True),
        "deliveries": pd.concat(deliveries, ignore_index=True),
        "probes": probe(truth, rng),
        "subscriptions": pd.DataFrame(
            {
                "subscription": [f"s-{name}" for name in truth.wants],
                "subscriber": list(truth.wants),
                "broker": [home for home, _ in truth.wants.values()],
                "action": "subscribe",
                "at_ns": EPOCH_NS,
                "filter": [json.dumps(wants) for _, wants in truth.wants.values()],
            }
        ),
    }
    return truth


def publish(truth: Planted, rng: np.random.Generator) -> pd.DataFrame:
    parts = []
    for name, law in truth.every.items():
        size = int(truth.window_s / law.mean_s * 1.3) + 100
        times = np.cumsum(draw(law, rng, size))
        times = times[times < truth.window_s]
        rows = truth.contents[name]
        which = rng.choice(len(rows), p=[p for p, _, _ in rows], size=len(times))
        lifetime = [None if rows[k][2] is None else round(rows[k][2] * SECOND_NS) for k in which]
        parts.append(
            pd.DataFrame(
                {
                    "event": [f"{name}-{i}" for i in range(len(times))],
                    "publisher": name,
                    "broker": "west",
                    "published_ns": np.rint(times * SECOND_NS).astype(np.int64) + EPOCH_NS,
                    "content": [json.dumps(rows[k][1], separators=(",", ":")) for k in which],
                    "lifetime_ns": pd.array(lifetime, dtype="Int64"),
                    "size_bytes": pd.array([truth.size_bytes[name]] * len(times), dtype="Int64"),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def serve(arrived: np.ndarray, work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One server, first come first served: start no earlier than the server is free."""
    started, left, free = np.empty_like(arrived), np.empty_like(arrived), np.int64(0)
    for i in range(len(arrived)):
        started[i] = max(arrived[i], free)
        free = left[i] = started[i] + work[i]
    return started, left


def probe(truth: Planted, rng: np.random.Generator) -> pd.DataFrame:
    parts, each = [], truth.probes
    for (source, target), (delay, kept) in truth.links.items():
        sent = np.linspace(0, truth.window_s * SECOND_NS, each, endpoint=False).astype(np.int64)
        travelled = np.rint(draw(delay, rng, each) * SECOND_NS).astype(np.int64)
        received = pd.array(sent + travelled + EPOCH_NS, dtype="Int64")
        received[rng.random(each) >= kept] = pd.NA
        parts.append(
            pd.DataFrame(
                {
                    "source": source,
                    "target": target,
                    "sent_ns": sent + EPOCH_NS,
                    "received_ns": received,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def write(truth: Planted, folder: Path, *, leave_out: tuple[str, ...] = (), parts: int = 1) -> Path:
    """The traces as Parquet tables with a manifest; in several parts, rows are shuffled."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in truth.tables.items():
        if name not in leave_out:
            (folder / name).mkdir(exist_ok=True)
            rows = table if parts == 1 else table.sample(frac=1.0, random_state=5)
            for part in range(parts):
                here = rows.iloc[part::parts]
                here.to_parquet(folder / name / f"part-{part}.parquet", index=False)
    manifest = {
        "version": 1,
        "from_ns": EPOCH_NS,
        "until_ns": EPOCH_NS + round(truth.window_s * SECOND_NS),
        "source": "planted",
    }
    (folder / "traces.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="session")
def planted() -> Planted:
    """The usual traces: four minutes, twenty-four thousand events."""
    return plant(seed=7)


@pytest.fixture(scope="session")
def planted_folder(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(planted, tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def characterised_by(spark, planted_folder):
    """The usual traces, characterised once, and the plans of all queries as they were run."""
    from tidings.characterisation.count import gathering, links
    from tidings.characterisation.job import characterise
    from tidings.traces.reading import read_traces

    bring_here, plans = gathering.bring_here, []

    def bring_and_note(statistic, what):
        table = bring_here(statistic, what)
        text = statistic._jdf.queryExecution().executedPlan().toString()
        plans.append(text.partition("== Initial Plan ==")[0])
        return table

    with pytest.MonkeyPatch.context() as patch:
        for module in (gathering, links):
            patch.setattr(module, "bring_here", bring_and_note)
        return characterise(read_traces(spark, planted_folder)), plans


@pytest.fixture(scope="session")
def characterised(characterised_by):
    """The usual traces, characterised once."""
    return characterised_by[0]


@pytest.fixture(scope="session")
def plant_traces():
    """Draw traces of one's own."""
    return plant


@pytest.fixture(scope="session")
def write_traces():
    """Write planted traces to a folder."""
    return write


@pytest.fixture(scope="session")
def dirty_folders(tmp_path_factory):
    """Dirty traces with a group of two members, in one folder and day by day."""
    tables = handled(dirty(plant(11, window_s=WINDOW_S).tables))
    return write_days(tables, tmp_path_factory.mktemp("days"))


@pytest.fixture(scope="session")
def dirty_store(spark, uncompiled, dirty_folders, tmp_path_factory):
    """A store of these days, added one after the other."""
    from tidings.characterisation.count.adding import add_traces
    from tidings.traces.reading import read_traces

    place = tmp_path_factory.mktemp("kept") / "store"
    with uncompiled():
        for number, day in enumerate(dirty_folders[1]):
            add_traces(read_traces(spark, day), place, margin_s=5.0 if number == 0 else None)
    return place


@pytest.fixture(scope="session")
def counted_at_once(spark, uncompiled, dirty_folders):
    """The statistics of these traces, counted at once."""
    from tidings.characterisation.count.gathering import Decided, gather
    from tidings.traces.reading import read_traces

    traces = read_traces(spark, dirty_folders[0])
    with uncompiled():
        return gather(traces, traces.window, lambda _: None, decided=Decided(every_link=True))
