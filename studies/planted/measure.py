"""How well what is planted in traces is learnt from them, and what it then predicts.

    python studies/planted/measure.py [--seeds 20] [--first 1] [--events 60000] [--write]

Draws systems of seven brokers in a tree, with a link that fails, lossy links of brokers and of
clients, subscribers that lose their connection and some that come and go. Each is simulated,
recorded, spoilt (2 % of the rows: written twice, without an id, at impossible times) and written as
CSV, JSON lines and Parquet; then characterised without any knowledge of it. Every parameter that
was planted is held against what was learnt, in standard errors; every subscriber's measured on-time
share against what the fitted system predicts. ``--write`` keeps the page of the docs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.job import characterise
from tidings.demonstration.run import with_truth
from tidings.model.parameter_values import parameter_values
from tidings.model.reading import from_document
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.simulation.recording import record
from tidings.sweeps.dirt import Dirt, spoil
from tidings.traces.reading import read_traces
from tidings.traces.session import spark_session
from tidings.validation.parameters import parameter_z

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "planted.md"
BROKERS = 7
WITHIN, MOST_S = 0.002, 60.0  # of a share, and CPU seconds of simulation at most
DIRT = Dirt(twice=0.008, nameless=0.006, impossible=0.006)
FORMATS = {"publications": "csv", "deliveries": "jsonl"}  # the others: Parquet
TOPICS = ("alarms", "prices", "trades")
Rng = np.random.Generator


def draw_system(seed: int) -> System:
    """Draw a tree of seven brokers with everything planted that is to be learnt."""
    rng = np.random.default_rng(seed)
    brokers = [f"b{number}" for number in range(BROKERS)]
    links: list[dict[str, Any]] = [
        {
            "between": [brokers[rng.integers(number)], brokers[number]],
            "delay": {"exponential": _round(rng.uniform(0.005, 0.03))},
            "reliability": _round(rng.uniform(0.95, 0.995)),
        }
        for number in range(1, BROKERS)
    ]
    fails = links[rng.integers(len(links))]
    del fails["reliability"]
    fails["failure"] = {"mtbf": _round(rng.uniform(60, 120)), "mttr": _round(rng.uniform(3, 8))}
    publishers = {
        f"p{number}": {
            "at": brokers[rng.integers(BROKERS)],
            "every": {"exponential": _round(rng.uniform(0.06, 0.2))},
            "link": {
                "delay": {"exponential": _round(rng.uniform(0.001, 0.01))},
                "reliability": _round(rng.uniform(0.95, 0.99)),
            },
            "content": _contents(rng),
        }
        for number in range(3)
    }
    busiest = sum(1.0 / each["every"]["exponential"] for each in publishers.values())
    services = {
        name: {"service": {"exponential": _round(rng.uniform(0.1, 0.5) / busiest)}}
        for name in brokers
    }
    return from_document(
        {
            "tidings": 1,
            "lifetime": _round(rng.uniform(0.1, 0.3)),
            "brokers": services,
            "links": links,
            "recovery": {"scheme": "periodic"},
            "publishers": publishers,
            "subscribers": {f"s{number}": _subscriber(rng, number) for number in range(8)},
        }
    )


def _subscriber(rng: Rng, number: int) -> dict[str, Any]:
    subscriber: dict[str, Any] = {
        "at": f"b{rng.integers(BROKERS)}",
        "wants": {"topic": str(rng.choice(TOPICS))},
        "link": {
            "delay": {"exponential": _round(rng.uniform(0.002, 0.02))},
            "reliability": _round(rng.uniform(0.8, 0.98)),
        },
    }
    if number in (1, 2):
        on, off = _round(rng.uniform(15, 30)), _round(rng.uniform(1, 4))
        subscriber["connectivity"] = {"on": {"exponential": on}, "off": {"exponential": off}}
    if number in (3, 4):
        stay, away = _round(rng.uniform(20, 60)), _round(rng.uniform(10, 40))
        subscriber["stays"] = {"exponential": stay}
        subscriber["away"] = {"exponential": away}
    return subscriber


def _contents(rng: Rng) -> list[dict[str, Any]]:
    shares = rng.dirichlet(np.full(len(TOPICS), 4.0)).round(3)
    shares[-1] = round(1.0 - shares[:-1].sum(), 3)
    return [
        {"p": float(share), "event": {"topic": topic}}
        for share, topic in zip(shares, TOPICS, strict=True)
    ]


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def write_traces(spark: SparkSession, system: System, seed: int, events: int, place: Path) -> None:
    """Record a run and write it dirty, in three formats."""
    rate = sum(each.rate_per_s for each in system.publishers)
    recorded = record(system, seed=seed, duration_s=events / rate, warmup_s=60.0, probes_per_s=0.5)
    for name, table in recorded.tables.items():
        spoilt = spoil(spark.createDataFrame(table), name, DIRT, seed).toArrow().to_pandas()
        match FORMATS.get(name):
            case "csv":
                spoilt.to_csv(place / f"{name}.csv", index=False)
            case "jsonl":
                spoilt.to_json(place / f"{name}.jsonl", orient="records", lines=True)
            case _:
                spoilt.to_parquet(place / f"{name}.parquet", index=False)


def learn(spark: SparkSession, seed: int, events: int) -> tuple[System, Characterisation]:
    """Give what was planted and what was learnt of it."""
    system = draw_system(seed)
    with TemporaryDirectory() as folder:
        write_traces(spark, system, seed, events, Path(folder))
        return system, characterise(read_traces(spark, Path(folder)))


def held_against_truth(truth: System, learnt: Characterisation, seed: int) -> pd.DataFrame:
    """Every planted parameter: the truth, the estimate, and how many standard errors it is off.

    Of what no event crossed nothing can be learnt; that losses are independent is learnt by not
    finding more of them in a row than by chance.
    """
    rows = with_truth(learnt.parameters, truth, learnt.system)
    rows = rows[rows["truth"].notna()]
    seen = {each.name for each in learnt.system.brokers}
    missing = [
        path
        for path in sorted(dict(parameter_values(truth)).keys() - set(rows["path"]))
        if not path.endswith(".loss_burst") and _is_seen(path, seen, truth)
    ]
    rows = pd.concat([rows, pd.DataFrame({"path": missing})])
    return rows.assign(seed=seed, z=parameter_z(rows))


def _is_seen(path: str, brokers: Set[str], truth: System) -> bool:
    """Whether what a parameter belongs to was crossed by events; a link by its order in a file."""
    section, name, *_ = path.split(".")
    if section == "brokers":
        return name in brokers
    if section == "links":
        return set(name.split("--")) <= brokers and tuple(name.split("--")) in {
            each.between for each in truth.links
        }
    return True


def shares(learnt: Characterisation, seed: int) -> pd.DataFrame:
    """Measured and predicted on-time shares of every subscriber, and how far they are apart.

    What is predicted has an error of its own, which is kept small beside that of what was measured.
    """
    answer = predict(learnt.system, seed=seed, within=WITHIN, seconds=MOST_S)
    predicted = answer.subscribers.set_index("subscriber")
    measured = learnt.measured.subscribers.set_index("subscriber")
    predicted = predicted.loc[measured.index]
    return (
        pd.DataFrame(
            {
                "seed": seed,
                "measured": measured["on_time"],
                "measured_se": measured["on_time_se"],
                "predicted": predicted["on_time"],
                "error": predicted["error"],
                "off": predicted["on_time"] - measured["on_time"],
            }
        )
        .assign(z=lambda rows: rows["off"] / np.hypot(rows["measured_se"], rows["error"] / 1.96))
        .reset_index()
    )


def kind_of(path: str) -> str:
    """Name the kind of a parameter: its path without the names in it."""
    section, _, *rest = path.split(".")
    return ".".join([section, *("#" if each.isdigit() else each for each in rest)])


def _summary(parameters: pd.DataFrame, subscribers: pd.DataFrame) -> str:
    fitted, off = parameters["z"].notna(), parameters["z"].abs()
    return (
        f"{len(parameters)} parameters, {int((~fitted).sum())} not learnt, "
        f"{(off[fitted] <= 2).mean():.1%} within 2 standard errors, worst {off.max():.1f}; "
        f"{len(subscribers)} on-time shares, mean error {subscribers['off'].abs().mean():.4f}, "
        f"worst {subscribers['off'].abs().max():.4f}, {_shares_summary(subscribers['z'])}"
    )


def _shares_summary(z: pd.Series) -> str:
    """Tell bias from chance: the mean of what shares are off, in its own standard error."""
    known = z[np.isfinite(z)]
    half = 1.96 * known.std() / max(len(known), 2) ** 0.5
    return (
        f"{(known.abs() <= 2).mean():.1%} within 2 standard errors of both, on average "
        f"{known.mean():+.2f} ± {half:.2f} of them"
    )


def _page(parameters: pd.DataFrame, subscribers: pd.DataFrame, events: int) -> str:
    head = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    lines = [
        "| parameter | planted | not learnt | within 2 s.e. | worst, in s.e. |",
        "|---|---|---|---|---|",
    ]
    for kind, rows in parameters.groupby(parameters["path"].map(kind_of)):
        off = rows["z"].dropna().abs()
        within = f"{(off <= 2).mean():.1%}" if len(off) else ""
        worst = f"{off.max():.1f}" if len(off) else ""
        lines.append(f"| `{kind}` | {len(rows)} | {len(rows) - len(off)} | {within} | {worst} |")
    return head.format(
        systems=parameters["seed"].nunique(),
        events=events,
        summary=_summary(parameters, subscribers),
        table="\n".join(lines),
    ).rstrip()


def main() -> None:
    """Draw, learn, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    parameters, subscribers = [], []
    with spark_session() as spark:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            truth, learnt = learn(spark, seed, arguments.events)
            parameters.append(held_against_truth(truth, learnt, seed))
            subscribers.append(shares(learnt, seed))
            print(f"seed {seed}: {_summary(parameters[-1], subscribers[-1])}", file=sys.stderr)
    page = _page(pd.concat(parameters), pd.concat(subscribers), arguments.events)
    print(page)
    if arguments.write:
        PAGE.write_text(page + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
