"""How far predictions of real streams are off, on the half of them that was not seen.

    python studies/traffic/measure.py DATA [--only WORD] [--seconds 5]

Times of the first half of every stream are counted on Spark and described as ``tidings
characterise --replay`` does; the system with these publishers is predicted, at loads of 0.3, 0.6
and 0.8, through two and five brokers. What is unseen is the second half, played by a recursion
that knows nothing of the simulator. Streams that never settle are flagged.
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
from traffic.streams import streams

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
Described = tuple[Traffic, Publishing, tuple[str, ...]]
COLUMNS = ("stream", "kind", "flagged", "load", "brokers", "waits", "predicted", "se", "unseen",
           "unseen_se")  # fmt: skip


def describe(spark: SparkSession, times_s: Floats, folder: Path) -> Described:
    """What the first half of a stream is, how it is replayed, and what is unsure of that."""
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
    publishes, unsure = replayed(traffic, window.seconds, str(file))
    return traffic[NAME], publishes, unsure


def cases(
    name: str,
    times_s: Floats,
    described: Described,
    seconds: float,
) -> Iterator[tuple[object, ...]]:
    """Predicted and unseen on-time shares of one stream, at every load and number of brokers."""
    traffic, publishes, unsure = described
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
                rows = predict(line(publishes, brokers, service_s), **asked).subscribers
            except UnstableError:
                print(f"  load {load}: the first half alone overloads the brokers, so it is said")
                continue
            for waits, row, share, error in zip(LIFETIMES, rows.itertuples(), *seen, strict=True):
                yield (name, traffic.kind, bool(unsure), load, brokers, waits,
                       row.on_time, row.on_time_se, share, error)  # fmt: skip


def summary(found: pd.DataFrame) -> str:
    """Mean and largest error, and the share of cases within both sides' 95 % errors."""
    if found.empty:
        return "none"
    error = (found["predicted"] - found["unseen"]).abs()
    covered = error <= 1.96 * np.hypot(found["se"], found["unseen_se"])
    return f"mean {error.mean():.3f}, worst {error.max():.3f}, covered {covered.mean():.0%}"


def main() -> None:
    """Print every stream's errors, then those of all that are not flagged, and of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    tables = []
    with spark_session(small=True) as spark, TemporaryDirectory() as folder:
        for number, (name, times_s) in enumerate(streams(asked.data)):
            if asked.only not in name:
                continue
            place = Path(folder) / str(number)
            place.mkdir()
            described = describe(spark, times_s, place)
            rows = pd.DataFrame(cases(name, times_s, described, asked.seconds), columns=COLUMNS)
            tables.append(rows)
            block_s = described[1].block_s
            print(f"{name}: {described[0].kind} ({described[0].why}); blocks of {block_s:.4g} s")
            print(f"  {'FLAGGED, ' if described[2] else ''}{summary(rows)}", flush=True)
            for load in LOADS:
                print(f"    load {load}: {summary(rows[rows['load'] == load])}")
    found = pd.concat(tables, ignore_index=True)
    print(f"not flagged: {summary(found[~found['flagged']])}")
    print(f"flagged: {summary(found[found['flagged']])}")


if __name__ == "__main__":
    main()
