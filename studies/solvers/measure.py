"""How well Tidings agrees with solvers that others wrote, question by question.

    pip install 'tidings[crosscheck]'
    python studies/solvers/measure.py [--write]

Where both are exact, or know their error, the difference is given beside what it may be.
``--write`` keeps the page of the docs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import tidings as td
from studies.solvers.systems import BUFFERS, LINE, QUEUE, SHOP
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.samples import sample_of
from tidings.model.reading import loads
from tidings.reporting.queueing_networks import jsimg
from tidings.theory.repairs.frontier import Graph, connected

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "other-solvers.md"
SIGMAS = 4.0  # standard errors that two answers may be apart
ROUNDED = 1e-4  # LINE prints, and reads back, five digits
CIW_RUNS, CIW_S, EDGE_S = 10, 500.0, 10.0  # runs, their length, and what of each end is not counted
TIMES = 2_000  # that laws are fitted to
SOLVERS = {
    "LINE": "line-solver",
    "Ciw": "ciw",
    "mpmath": "mpmath",
    "Graphillion": "graphillion",
    "Storm": "stormpy",
    "phasedist": "phasedist",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question, both answers, and how far they may be apart."""

    solver: str
    question: str
    ours: float
    theirs: float
    allowed: float
    why: str  # the answers may be that far apart

    @property
    def agrees(self) -> bool:
        """Whether the answers are as near as they must be."""
        return abs(self.ours - self.theirs) <= self.allowed

    def cells(self) -> tuple[str, ...]:
        """Give what a row of the table says."""
        apart = f"{abs(self.ours - self.theirs):.2g}"
        numbers = (f"{self.ours:.6g}", f"{self.theirs:.6g}", apart, f"{self.allowed:.2g}")
        verdict = "yes" if self.agrees else "**no**"
        return (self.solver, self.question, *numbers, self.why, verdict)


def line_rows() -> Iterator[Row]:
    """Compare mean times at brokers with LINE, which solves the exported network (MVA)."""
    solve = (
        "import json, sys\n"
        "from line_solver import MVA\n"
        "from line_solver.api.io.jmt_io import jsim2line\n"
        "rows = MVA(jsim2line(sys.argv[1])).avg_table()\n"
        "print(json.dumps([[*map(str, each)] for each in zip(rows['Station'], rows['RespT'])]))\n"
    )
    system = loads(SHOP)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shop.jsimg"
        file.write_text(jsimg(system), encoding="utf-8")
        command = [sys.executable, "-c", solve, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    by_line = {name: float(value) for name, value in json.loads(done.stdout.splitlines()[-1])}
    brokers = td.predict(system, by="theory").brokers
    for broker in brokers.itertuples():
        ours_s = broker.wait_mean_s + broker.service_mean_s
        yield Row(
            solver="LINE",
            question=f"mean time at {broker.broker}, s",
            ours=ours_s,
            theirs=by_line[broker.broker],
            allowed=ROUNDED * ours_s,
            why="both exact; LINE rounds",
        )


def ciw_rows() -> Iterator[Row]:
    """Compare on-time shares over three brokers with runs of Ciw."""
    import ciw

    law = ciw.dists
    cases = [  # every, service, servers, lifetime
        ("{exponential: 10ms}", law.Exponential(100), "{exponential: 7ms}", 1, 0.06),
        ("10ms", law.Deterministic(0.01), "{exponential: 8ms}", 1, 0.08),
        ("{exponential: 10ms}", law.Exponential(100), "{uniform: [10ms, 30ms]}", 3, 0.09),
    ]
    services = [law.Exponential(1 / 0.007), law.Exponential(1 / 0.008), law.Uniform(0.01, 0.03)]
    for (every, arrivals, service, servers, lifetime_s), theirs in zip(
        cases, services, strict=True
    ):
        text = LINE.format(service=service, servers=servers, every=every, lifetime_s=lifetime_s)
        row = td.predict(loads(text)).subscribers.iloc[0]
        shares = [
            _ciw_share(arrivals, theirs, servers, lifetime_s, seed) for seed in range(CIW_RUNS)
        ]
        share, error = np.mean(shares), np.std(shares, ddof=1) / math.sqrt(len(shares))
        yield Row(
            solver="Ciw",
            question=f"on time within {lifetime_s:g} s: every {every}, service {service}"
            + (f", {servers} servers" if servers > 1 else ""),
            ours=float(row["on_time"]),
            theirs=float(share),
            allowed=float(row["error"]) + SIGMAS * float(error),
            why=f"our stated error, and {SIGMAS:g} s.e. of Ciw",
        )


def _ciw_share(arrivals: object, service: object, servers: int, lifetime_s: float, seed: int):
    import ciw

    on_the_way = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    network = ciw.create_network(
        arrival_distributions=[arrivals, None, None],
        service_distributions=[service] * 3,
        number_of_servers=[servers] * 3,
        routing=on_the_way,
    )
    ciw.seed(seed)
    run = ciw.Simulation(network)
    run.simulate_until_max_time(CIW_S)
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for record in run.get_all_records():
        if record.node == 1:
            first[record.id_number] = record.arrival_date
        elif record.node == 3:
            last[record.id_number] = record.exit_date
    counted = [each for each, at_s in first.items() if EDGE_S < at_s < CIW_S - EDGE_S]
    return np.mean([last.get(each, math.inf) - first[each] <= lifetime_s for each in counted])


def mpmath_rows() -> Iterator[Row]:
    """Compare on-time shares of one M/G/1 queue and a link with an inversion by mpmath."""
    from mpmath import invertlaplace, mp, mpf

    mp.dps = 30
    service_s, shape, rate, link_s = mpf("0.008"), mpf("0.5"), mpf(1) / mpf("0.012"), mpf("0.02")

    def late(z):
        service = (1 + z * service_s / shape) ** -shape
        wait = (1 - rate * service_s) * z / (z - rate * (1 - service))
        return (1 - wait * service / (1 + z * link_s)) / z

    for lifetime_s in (0.03, 0.1, 0.2, 0.3):
        theirs = float(invertlaplace(late, mpf(repr(lifetime_s)), method="talbot"))
        system = loads(QUEUE.format(lifetime_s=lifetime_s))
        row = td.predict(system, by="theory").subscribers.iloc[0]
        ours = 1.0 - float(row["on_time"])
        yield Row(
            solver="mpmath",
            question=f"late after {lifetime_s:g} s: M/G/1, gamma services, a link",
            ours=ours,
            theirs=theirs,
            allowed=1e-3 * theirs,
            why="both exact; .1 % of the share late for our grid",
        )


def graphillion_rows() -> Iterator[Row]:
    """Compare how likely brokers are joined while links fail with Graphillion."""
    from graphillion import GraphSet

    rng = np.random.default_rng(7)
    for brokers, links in ((8, 14), (14, 22), (20, 30)):
        pairs = [(number, int(rng.integers(number))) for number in range(1, brokers)]
        while len(pairs) < links:
            one, other = sorted(map(int, rng.choice(brokers, 2, replace=False)))
            if (other, one) not in pairs:
                pairs.append((other, one))
        up = {pair: float(rng.uniform(0.6, 0.99)) for pair in pairs}
        ends = (0, brokers - 1)
        graph = Graph(brokers=dict.fromkeys(range(brokers), 1.0), links=up)
        GraphSet.set_universe(pairs)
        yield Row(
            solver="Graphillion",
            question=f"two of {brokers} brokers joined over {links} links that fail",
            ours=float(connected(graph)[ends]),
            theirs=float(GraphSet.reliability(up, list(ends))),
            allowed=1e-10,
            why="both exact",
        )


BETWEEN_S, FIRST_S, SECOND_S = 0.010, 0.008, 0.009  # events, and services, as in BUFFERS
CHAIN = f"""
ctmc
module queues
  n : [0..4] init 0;
  m : [0..5] init 0;
  <> n<4 -> 1/{BETWEEN_S} : (n'=n+1);
  <> n>0 & m<5 -> 1/{FIRST_S} : (n'=n-1) & (m'=m+1);
  <> n>0 & m=5 -> 1/{FIRST_S} : (n'=n-1);
  <> m>0 -> 1/{SECOND_S} : (m'=m-1);
endmodule
"""


def storm_rows() -> Iterator[Row]:
    """Compare what two full buffers in a row lose with Storm, which solves the Markov chain."""
    import stormpy

    with TemporaryDirectory() as folder:
        file = Path(folder) / "queues.prism"
        file.write_text(CHAIN, encoding="utf-8")
        program = stormpy.parse_prism_program(str(file))
    asked = stormpy.parse_properties("S=? [n=4]; S=? [n>0 & m=5]", program)
    model = stormpy.build_model(program, asked)
    start = model.initial_states[0]
    full, full_behind = (stormpy.model_checking(model, each).get_value(start) for each in asked)
    row = td.predict(loads(BUFFERS)).subscribers.iloc[0]
    yield Row(
        solver="Storm",
        question="share lost at two bounded buffers in a row",
        ours=float(row["lost_overflow"]),
        theirs=full + full_behind * BETWEEN_S / FIRST_S,
        allowed=float(row["error"]),
        why="our stated error",
    )


def phasedist_rows() -> Iterator[Row]:
    """Compare the distribution fitted to times of two kinds with phasedist's, by EM."""
    import phasedist

    rng = np.random.default_rng(3)
    short = rng.random(TIMES) < 0.8
    times_s = np.where(short, rng.exponential(0.01, TIMES), rng.exponential(0.1, TIMES))
    ours = fit_law(sample_of(times_s)).law
    theirs = phasedist.fit(obs=times_s, nphases=2, dtype="hyperexp", seed=1)
    yield Row(
        solver="phasedist",
        question="mean of a fitted hyperexponential, s",
        ours=ours.mean_s,
        theirs=theirs.getmean(),
        allowed=1e-6 * ours.mean_s,
        why="both keep the mean of the times",
    )
    for within_s in (0.005, 0.02, 0.1):
        share = float(np.mean(times_s <= within_s))
        yield Row(
            solver="phasedist",
            question=f"share of times below {within_s:g} s",
            ours=float(ours.cdf(within_s)),
            theirs=float(np.squeeze(theirs.dist.getcumprob(within_s))),
            allowed=math.sqrt(share * (1.0 - share) / TIMES),
            why=f"1 s.e. of the share of {TIMES:,} times",
        )


ASKED: tuple[Callable[[], Iterator[Row]], ...] = (
    line_rows,
    ciw_rows,
    mpmath_rows,
    graphillion_rows,
    storm_rows,
    phasedist_rows,
)


def page(rows: list[Row]) -> str:
    """Write the page of the docs."""
    heads = ("with", "question", "ours", "theirs", "apart", "allowed", "because", "agrees")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(each.cells()) + " |" for each in rows]
    named = ", ".join(f"{name} {version(package)}" for name, package in SOLVERS.items())
    text = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    agree = f"{sum(each.agrees for each in rows)} of {len(rows)} answers agree"
    return text.format(agree=agree, solvers=named, table="\n".join(lines))


def main() -> int:
    """Ask all solvers, print the page, and keep it where wanted; 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the page of the docs")
    write = parser.parse_args().write
    rows = [row for ask in ASKED for row in ask()]
    text = page(rows)
    print(text)
    if write:
        PAGE.write_text(text, encoding="utf-8")
    return 0 if all(each.agrees for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
