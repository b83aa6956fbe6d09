"""How long links take: from measured round-trip times, or from a law of the same shape.

A round trip is halved to get one way; that is an assumption, and is said wherever it matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Empirical, Law, Weibull
from tidings.model.plain_files import open_plain

COLUMNS = ("slice", "src", "dst", "rtt_ms")

# Half the round-trip times between research sites all over the world (PlanetLab; 490 nodes, 18
# slices of time): this law is within 6 ms of their 1, 5, 25, 50 and 75 % quantiles, and of their
# mean; the law is the longer one beyond (by 12 ms at 95 %, 29 ms at 99 %).
WIDE_AREA = Weibull(scale_s=0.081, shape=1.4)

BUILT_IN = (
    "Each link has a constant delay, drawn from a Weibull law of wide-area shape: scale "
    f"{1e3 * WIDE_AREA.scale_s:g} ms, shape {WIDE_AREA.shape:g}, mean "
    f"{1e3 * WIDE_AREA.mean_s:.0f} ms."
)

LinkDelays = Callable[[np.random.Generator], Law]


def wide_area(random: np.random.Generator) -> Law:
    """A link of constant delay, drawn from ``WIDE_AREA`` (mean 74 ms one way).

    Between two sites the measured times vary little (their median coefficient of variation is
    under 2 %); between pairs of sites they vary a lot. So it is links that differ, not events.
    """
    return Deterministic(value_s=float(WIDE_AREA.quantile(random.random())))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatencyTable:
    """Measured round-trip times between nodes, in milliseconds: a row per pair and slice."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    rtt_ms: NDArray[np.float64]
    left_out: int  # rows that were no times: not finite, or not above 0

    def describe(self, name: str) -> str:
        """Where links come from, in a sentence."""
        left_out = f" ({self.left_out:,} rows that were no times left out)" if self.left_out else ""
        return (
            f"Each link is that of a random pair of nodes in {name}{left_out}: half of any of the "
            "pair's round trips, equally likely. That one way takes half of both is assumed."
        )

    def draw(self, random: np.random.Generator) -> Law:
        """A link like that of a random pair: half of any of its round trips, equally likely."""
        row = int(random.integers(self.rtt_ms.size))
        same = (self.source == self.source[row]) & (self.target == self.target[row])
        times_s, counts = np.unique(0.5e-3 * self.rtt_ms[same], return_counts=True)
        if times_s.size == 1:
            return Deterministic(value_s=float(times_s[0]))
        # Every time is an atom; the bins between them are empty.
        weights = np.zeros(2 * times_s.size - 1)
        weights[::2] = counts / counts.sum()
        return Empirical(edges_s=tuple(np.repeat(times_s, 2)), weights=tuple(weights))


def read_latencies(path: str | Path) -> LatencyTable:
    """Round-trip times from a Parquet file with the columns slice, src, dst and rtt_ms."""
    import pyarrow.parquet as parquet
    from pyarrow import ArrowException

    try:
        with open_plain(path, follow=True) as file:
            there = parquet.read_schema(file).names
            missing = [name for name in COLUMNS if name not in there]
            if missing:
                raise InvalidInputError(
                    f"{path} has no column {', '.join(missing)}; wants {', '.join(COLUMNS)}"
                )
            table = parquet.read_table(file, columns=list(COLUMNS[1:]))
        source, target, rtt_ms = (_numbers(table, name) for name in COLUMNS[1:])
    except (OSError, ArrowException, ValueError) as problem:
        raise InvalidInputError(
            f"{path} cannot be read as round-trip times: {problem}"
        ) from problem
    good = np.isfinite(rtt_ms) & (rtt_ms > 0) & np.isfinite(source) & np.isfinite(target)
    if not good.any():
        raise InvalidInputError(f"{path} holds no round-trip time above 0")
    return LatencyTable(
        source=source[good].astype(np.int64),
        target=target[good].astype(np.int64),
        rtt_ms=rtt_ms[good],
        left_out=int((~good).sum()),
    )


def link_delays(file: Path | None) -> tuple[LinkDelays, str]:
    """Choose where links come from, a file of round-trip times or a law, and say so in words."""
    if file is None:
        return wide_area, BUILT_IN
    table = read_latencies(file)
    return table.draw, table.describe(file.name)


def _numbers(table: Any, name: str) -> NDArray[np.float64]:
    """A column as floats; what is null becomes NaN."""
    values: NDArray[np.float64] = table[name].to_pandas().to_numpy(dtype=np.float64)
    return values
