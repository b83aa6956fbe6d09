"""How far predictions of real streams are off, on the half of them that was not seen.

    python studies/traffic/measure.py DATA [--others] [--only WORD] [--seconds 5]

Times of the first half of every stream are counted on Spark and described as ``tidings
characterise --replay`` does; the system with these publishers is predicted, at loads of 0.3, 0.6
and 0.8, through two and five brokers. What is unseen is the second half, played by a recursion
that knows nothing of the simulator. Answers are flagged that say of themselves that parts of the
record are too unlike each other. ``--others`` takes streams that no rule was found on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from traffic.playing import LIFETIMES, NAME, delays_s, line, on_time
from traffic.streams import others, streams

from tidings.characterisation.count.publications import interval_statistics
from tidings.characterisation.fit.publishers import interval_samples
from tidings.characterisation.fit.traffic import Traffic, find_traffic
from tidings.characterisation.replaying import replayed
from tidings.errors import UnstableError
from tidings.model.arrays import Floats
from tidings.model.publishing import Publishing
from tidings.prediction.predict import predict
from tidings.traces.session import spark_session
from tidings.traces.window import TraceWindow

LOADS, BROKERS = (0.3, 0.6, 0.8), (2, 5)
Described = tuple[Traffic, Publishing]
COLUMNS = ("stream", "kind", "flagged", "load", "brokers", "waits", "predicted", "se", "unseen",
           "unseen_se")  # fmt: skip


def describe(spark: SparkSession, times_s: Floats, folder: Path) -> Described:
    """What the first half of a stream is, and how it is replayed."""
    half_s = times_s[0] + (times_s[-1] - times_s[0]) / 2.0
    at_ns = (times_s[times_s < half_s] * 1e9).astype(np.int64)
    window = TraceWindow(from_ns=int(times_s[0] * 1e9), until_ns=int(half_s * 1e9) + 1)
    events = [f"e{number}" for number in range(len(at_ns))]
    rows = pd.DataFrame({"event": events, "publisher": NAME, "published_ns": at_ns})
    rows = rows.assign(broker="b0", content="{}", lifetime_ns=None, size_bytes=None)
    file = folder / "times.parquet"
    rows.astype({"lifetime_ns": "Int64", "size_bytes": "Int64"}).to_parquet(file)
    counted = interval_statistics(spark.read.parquet(str(file)), window).toPandas()
    traffic = find_traffic(counted, interval_samples(counted), window)
    return traffic[NAME], replayed(traffic, window.seconds, str(file))[0]


def cases(
    name: str,
    times_s: Floats,
    described: Described,
    seconds: float,
) -> Iterator[tuple[object, ...]]:
    """Predicted and unseen on-time shares of one stream, at every load and number of brokers."""
    traffic, publishes = described
    since_s = times_s[0] + (times_s[-1] - times_s[0]) / 2.0
    rate = len(times_s) / (times_s[-1] - times_s[0])
    rng = np.random.default_rng(1)
    for brokers in BROKERS:
        for load in LOADS:
            service_s = load / rate
            delay_s = delays_s(times_s, rng.exponential(service_s, (brokers, len(times_s))))
            lifetimes_s = np.array(LIFETIMES) * brokers * service_s
            seen = on_time(times_s, delay_s, lifetimes_s, since_s, times_s[-1])
            try:
                asked = {"within": 0.01, "seconds": seconds}
                answer = predict(line(publishes, brokers, service_s), **asked)
            except UnstableError:
                print(f"  load {load}: the first half alone overloads the brokers, so it is said")
                continue
            flagged = {each for one in answer.remarks if one.kind == "record" for each in one.where}
            rows = answer.subscribers.itertuples()
            for waits, row, share, error in zip(LIFETIMES, rows, *seen, strict=True):
                yield (name, traffic.kind, row.subscriber in flagged, load, brokers, waits,
                       row.on_time, row.on_time_se, share, error)  # fmt: skip


def summary(rows: pd.DataFrame) -> str:
    """Mean and largest error, and the share of cases within both sides' 95 % errors."""
    if rows.empty:
        return "none"
    error = (rows["predicted"] - rows["unseen"]).abs()
    covered = error <= 1.96 * np.hypot(rows["se"], rows["unseen_se"])
    return (
        f"{len(rows)} cases, mean {error.mean():.3f}, worst {error.max():.3f}, "
        f"covered {covered.mean():.0%}"
    )


def both(rows: pd.DataFrame) -> str:
    """The same of cases that are not flagged, and of those that are."""
    flagged = rows["flagged"].astype(bool)
    return f"not flagged: {summary(rows[~flagged])}; flagged: {summary(rows[flagged])}"


def main() -> None:
    """Print every stream's errors, then those of all streams."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    chosen = others if asked.others else streams
    tables = []
    with spark_session(small=True) as spark, TemporaryDirectory() as folder:
        for number, (name, times_s) in enumerate(chosen(asked.data)):
            if asked.only not in name:
                continue
            place = Path(folder) / str(number)
            place.mkdir()
            described = describe(spark, times_s, place)
            rows = pd.DataFrame(cases(name, times_s, described, asked.seconds), columns=COLUMNS)
            tables.append(rows)
            block_s = described[1].block_s
            print(f"{name}: {described[0].kind} ({described[0].why}); blocks of {block_s:.4g} s")
            print(f"  {both(rows)}", flush=True)
    every = pd.concat(tables, ignore_index=True)
    print(f"all: {summary(every)}\n{both(every)}")


if __name__ == "__main__":
    main()
