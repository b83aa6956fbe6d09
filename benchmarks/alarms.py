"""How often a watch alarms on days on which nothing changes, and whether it names what changes.

Days are simulated and judged as ``tidings watch`` judges, look by look of a minute, by the same
code. Only counting is done without Spark, from the rows of an hour at once, so that hundreds of
days are cheap; ``--check`` holds it against what Spark counts of the same rows. Each promise is the
share that is predicted: one that is just kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from recording import add_write_option, record
from scipy import stats

import tidings as td
from tidings.characterisation.fit.fitted import Characterisation
from tidings.model.laws import Exponential
from tidings.model.standard_errors import Reals, share_se
from tidings.model.system import System
from tidings.planning.change_kinds import times
from tidings.watching.alarms import alarms
from tidings.watching.counts import EventCounts, Stretch
from tidings.watching.shares import WINDOWS_S, tally
from tidings.watching.standing import Known, Look
from tidings.watching.state import CHANGED, Alarm
from tidings.watching.telling import turned

LOOK_S, HOUR_S = 60.0, 3600.0
LOOK_NS = round(LOOK_S * 1e9)
BLOCK_S = 6 * HOUR_S  # simulated at once
STEADY_S = 600.0  # before a change
AFTER_S = 30.0  # recorded after an hour, so that its events are through
Whole = npt.NDArray[np.int64]
Columns = Mapping[str, npt.NDArray[Any]]
LINE = """
tidings: 1
lifetime: {lifetime}
brokers:
  hub: {{service: {{exponential: {service}}}}}
  edge: {{service: {{exponential: {service}}}}}
links:
  - {{between: [hub, edge], delay: {{exponential: {delay}}}, reliability: {reliability}}}
publishers:
  ticker: {{at: hub, every: {{exponential: {every}}}, content: {{event: {{topic: stock}}}}}}
  mast: {{at: edge, every: {{exponential: {every}}}, content: {{event: {{topic: wind}}}}}}
subscribers:
  trader: {{at: edge, wants: {{topic: stock}}}}
  sailor: {{at: hub, wants: {{topic: wind}}}}
"""


def line(every: str, service: str, delay: str, lifetime: str, reliability: str = "0.99") -> System:
    """Make two brokers with events in both directions."""
    times = {"every": every, "service": service, "delay": delay, "lifetime": lifetime}
    return td.loads(LINE.format(**times, reliability=reliability))


def many(peers: int) -> System:
    """A hub with so many publishers at edges of it, each with a subscriber at another one."""
    edges = range(peers)
    return td.loads(
        json.dumps(
            {
                "tidings": 1,
                "lifetime": "100ms",
                "brokers": {
                    "hub": {"service": {"exponential": "2ms"}},
                    **{f"edge{n}": {"service": {"exponential": "5ms"}} for n in edges},
                },
                "links": [
                    {
                        "between": ["hub", f"edge{n}"],
                        "delay": {"exponential": "20ms"},
                        "reliability": 0.995,
                    }
                    for n in edges
                ],
                "publishers": {
                    f"pub{n}": {
                        "at": f"edge{n}",
                        "every": {"exponential": "1s"},
                        "content": {"event": {"topic": f"t{n}"}},
                    }
                    for n in edges
                },
                "subscribers": {
                    f"sub{n}": {"at": f"edge{(n + 1) % peers}", "wants": {"topic": f"t{n}"}}
                    for n in edges
                },
            }
        )
    )


SYSTEMS: dict[str, Callable[[], System]] = {
    "light": lambda: line("200ms", "40ms", "20ms", "300ms"),  # 40 % busy
    "busy": lambda: line("200ms", "90ms", "20ms", "2s"),  # 90 % busy: queues outlast a minute
    "slow links": lambda: line("100ms", "20ms", "2s", "8s"),  # some are always under way
    "many": lambda: many(20),  # 121 numbers, each from sixty events
    "quiet": lambda: line("4s", "100ms", "50ms", "400ms"),  # fifteen events a minute: too few
    "lossy": lambda: line("200ms", "40ms", "20ms", "300ms", "0.8"),
    "tight": lambda: line("100ms", "30ms", "20ms", "40ms"),  # most are late, at 60 % busy
}


# ---- counting ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What happened in some hours, in columns; times (``at``) in ns since they began.

    All names are numbers, their places among those of the system, as texts take their time.
    """

    from_ns: int
    length_ns: int
    publications: Columns  # who (publisher), at; in the order of time
    hops: Columns  # who (broker), at, wait_s, service_s
    crossings: Columns  # who (source and target), at: sent, there: arrived (-1: never), delay_s
    outcomes: Columns  # who (subscriber), at: published, delivered, on_time

    def parts(self, part_ns: int) -> int:
        """How many parts of a length it has."""
        return self.length_ns // part_ns


def block_of(system: System, wanted_by: Mapping[str, list[str]], recording: Any) -> Block:
    """Take from a recording what is counted."""
    begin, tables = recording.from_ns, recording.tables
    published, hops, received = (tables[each] for each in ("publications", "hops", "deliveries"))
    brokers, publishers, subscribers = (
        [each.name for each in of] for of in (system.brokers, system.publishers, system.subscribers)
    )
    texts = pa.chunked_array([c for t in (published, hops, received) for c in t["event"].chunks])
    events = pc.dictionary_encode(texts).combine_chunks().indices.to_numpy().astype(np.int64)
    of_published, of_hops, of_received = np.split(events, np.cumsum([len(published), len(hops)]))
    arrived, started, left = (
        hops[name].to_numpy() - begin for name in ("arrived_ns", "started_ns", "left_ns")
    )
    at_broker = _numbers(hops["broker"], brokers)
    lists = hops["sent_to"].combine_chunks()
    sender = pc.list_parent_indices(lists).to_numpy()
    target = _numbers(pc.list_flatten(lists), brokers)
    sender, target = sender[target >= 0], target[target >= 0]  # the others are subscribers
    there = _looked_up(
        of_hops * len(brokers) + at_broker, arrived, of_hops[sender] * len(brokers) + target
    )
    who, sent = _numbers(published["publisher"], publishers), published["published_ns"].to_numpy()
    order = np.argsort(sent, kind="stable")
    wants = [
        (publishers.index(publisher), subscribers.index(each))
        for publisher, those in wanted_by.items()
        for each in those
    ]
    wanted = [(np.flatnonzero(who == publisher), each) for publisher, each in wants]
    row = np.concatenate([rows for rows, _ in wanted])
    subscriber = np.concatenate([np.full(len(rows), each) for rows, each in wanted])
    got = _looked_up(
        of_received * len(subscribers) + _numbers(received["subscriber"], subscribers),
        received["received_ns"].to_numpy() - begin,
        of_published[row] * len(subscribers) + subscriber,
    )
    delay_ns = got - (sent[row] - begin)
    return Block(
        from_ns=begin,
        length_ns=recording.until_ns - begin - round(AFTER_S * 1e9),
        publications={"who": who[order], "at": sent[order] - begin},
        hops={
            "who": at_broker,
            "at": arrived,
            "wait_s": (started - arrived) / 1e9,
            "service_s": (left - started) / 1e9,
        },
        crossings={
            "who": at_broker[sender] * len(brokers) + target,
            "at": arrived[sender],
            "there": there,
            "delay_s": (there - left[sender]) / 1e9,
        },
        outcomes={
            "who": subscriber,
            "at": sent[row] - begin,
            "delivered": got >= 0,
            "on_time": (got >= 0) & (delay_ns <= published["lifetime_ns"].to_numpy()[row]),
        },
    )


def _numbers(column: Any, names: list[str]) -> npt.NDArray[np.int64]:
    """Names as their places in a list; -1 where they are not in it."""
    places: Whole = pc.fill_null(pc.index_in(column, pa.array(names)), -1).to_numpy()
    return places.astype(np.int64)


def _looked_up(keys: Whole, values: Whole, asked: Whole) -> Whole:
    """The value of the first row that has each key asked for; -1 where none has."""
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], asked)
    row = order[np.minimum(place, len(keys) - 1)]
    found: Whole = np.where(keys[row] == asked, values[row], -1)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Counts, means and variances of rows by part and by whom they are of."""

    parts: int
    kinds: int

    def cell(self, part: Whole, who: Whole) -> Whole:
        """The number of each row's cell; the last one is of rows of no part."""
        inside = (part >= 0) & (part < self.parts)
        return np.where(inside, part * self.kinds + who, self.parts * self.kinds)

    def add(self, cell: Whole, values: Any = None) -> Reals:
        """Add up values, or count them, by part and whom."""
        cells = self.parts * self.kinds
        sums = np.bincount(cell, weights=values, minlength=cells + 1)[:cells]
        return sums.reshape(self.parts, self.kinds).astype(np.float64)

    def moments(self, cell: Whole, values: Reals) -> tuple[Reals, Reals, Reals]:
        """Counts, means and variances, in two passes; NaN of too few."""
        count = self.add(cell)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.add(cell, values) / count
            of_cell = np.append(mean.ravel(), 0.0)[cell]
            squares = self.add(cell, (values - of_cell) ** 2)
            return count, mean, np.where(count > 1, squares / (count - 1), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Numbers by part (rows) and path (columns), and what waits by part and broker."""

    paths: npt.NDArray[np.object_]
    estimate: Reals
    standard_error: Reals
    count: Reals
    brokers: npt.NDArray[np.object_]
    arrivals: Reals
    service_s: Reals
    wait_s: Reals


def learnt(system: System, block: Block, part_ns: int) -> Learnt:
    """Rates, services, delays and reliabilities as each part by itself tells them."""
    seconds, parts = part_ns / 1e9, block.parts(part_ns)
    publishers, brokers = ([each.name for each in of] for of in (system.publishers, system.brokers))
    arcs = ["--".join(each) for each in itertools.product(brokers, repeat=2)]
    found: list[tuple[str, Reals, Reals, Reals]] = []
    with np.errstate(invalid="ignore", divide="ignore"):
        rows, sums = block.publications, Sums(parts=parts, kinds=len(publishers))
        cell = sums.cell(rows["at"] // part_ns, rows["who"])
        order = np.argsort(cell, kind="stable")  # by part and publisher, in the order of time
        within = cell[order][1:] == cell[order][:-1]
        between_s = np.diff(rows["at"][order])[within] / 1e9
        number = sums.add(cell)
        _, mean, variance = sums.moments(cell[order][1:][within], between_s)
        scv = np.nan_to_num(variance / mean**2, nan=1.0)
        names = [f"publishers.{each}.rate" for each in publishers]
        found += _columns(names, number / seconds, np.sqrt(number * scv) / seconds, number)

        rows, sums = block.hops, Sums(parts=parts, kinds=len(brokers))
        cell = sums.cell(rows["at"] // part_ns, rows["who"])
        arrivals, service_s, variance = sums.moments(cell, rows["service_s"])
        names = [f"brokers.{each}.service" for each in brokers]
        found += _columns(names, service_s, np.sqrt(variance / arrivals), arrivals)
        wait_s = sums.add(cell, rows["wait_s"]) / arrivals

        rows, sums = block.crossings, Sums(parts=parts, kinds=len(arcs))
        sent, came = rows["at"] // part_ns, rows["there"] // part_ns
        seen = sent == came  # what arrives in another part is lost to this one
        names = [f"links.{each}.delay" for each in arcs]
        cell = sums.cell(sent, rows["who"])
        number, mean, variance = sums.moments(cell[seen], rows["delay_s"][seen])
        found += _columns(names, mean, np.sqrt(variance / number), number)
        lost = sums.add(cell[~seen])
        tried = np.where(sums.add(cell) > 0, lost + sums.add(sums.cell(came, rows["who"])), 0.0)
        names = [f"links.{each}.reliability" for each in arcs]
        found += _columns(names, 1.0 - lost / tried, share_se(lost, tried), tried)
    paths, estimate, error, count = zip(*found, strict=True)
    return Learnt(
        paths=np.array(paths, dtype=object),
        estimate=np.stack(estimate, axis=1),
        standard_error=np.stack(error, axis=1),
        count=np.stack(count, axis=1),
        brokers=np.array(brokers, dtype=object),
        arrivals=arrivals,
        service_s=service_s,
        wait_s=wait_s,
    )


def _columns(
    names: list[str], estimate: Reals, error: Reals, count: Reals
) -> list[tuple[str, Reals, Reals, Reals]]:
    """The columns of those who were seen at all."""
    return [
        (name, estimate[:, n], error[:, n], count[:, n])
        for n, name in enumerate(names)
        if count[:, n].any()
    ]


def found_in(system: System, block: Block, part_ns: int) -> Iterator[Characterisation]:
    """What is learnt of each part of some hours, with what waits, as characterisation gives it.

    In columns rather than tables: these would take longer to be made than to be judged.
    """
    numbers = learnt(system, block, part_ns)
    for part in range(block.parts(part_ns)):
        seen, at = numbers.count[part] > 0, numbers.arrivals[part] > 0
        parameters = {
            "path": numbers.paths[seen],
            "estimate": numbers.estimate[part][seen],
            "standard_error": numbers.standard_error[part][seen],
            "count": numbers.count[part][seen],
        }
        brokers = {
            "broker": numbers.brokers[at],
            "arrivals_per_s": numbers.arrivals[part][at] / (part_ns / 1e9),
            "service_mean_s": numbers.service_s[part][at],
            "wait_mean_s": numbers.wait_s[part][at],
        }
        begin = block.from_ns + part * part_ns
        measured = SimpleNamespace(
            brokers=brokers, provenance={"from_ns": begin, "until_ns": begin + part_ns}
        )
        yield cast(
            "Characterisation",
            SimpleNamespace(system=system, parameters=parameters, measured=measured),
        )


def stretches_in(system: System, block: Block, later_ns: int) -> list[Stretch]:
    """What became of the events of every minute, so much later."""
    names = [each.name for each in system.subscribers]
    rows, sums = block.outcomes, Sums(parts=block.parts(LOOK_NS), kinds=len(names))
    cell = sums.cell(rows["at"] // LOOK_NS, rows["who"])
    counts = [
        sums.add(cell, values).astype(int).tolist()
        for values in (None, rows["delivered"], rows["on_time"])
    ]
    begin = block.from_ns + later_ns
    return [
        Stretch(
            from_ns=begin + part * LOOK_NS,
            until_ns=begin + (part + 1) * LOOK_NS,
            counts={
                name: EventCounts(wanted=wanted, delivered=delivered, on_time=on_time)
                for name, wanted, delivered, on_time in zip(names, *those, strict=True)
                if wanted
            },
        )
        for part, those in enumerate(zip(*counts, strict=True))
    ]


# ---- days ----------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Watched:
    """A system, what is expected of it, and how it is judged from minute to minute."""

    known: Known  # with promises
    wanted_by: Mapping[str, list[str]]

    @classmethod
    def of(cls, system: System) -> Watched:
        """A system of which everybody is promised what is predicted."""
        expected = td.predict(system, delays=False, seconds=60.0)
        rows = expected.subscribers
        shares = dict(zip(rows["subscriber"], rows["on_time"], strict=True))
        promised = replace(
            system,
            subscribers=tuple(
                replace(each, target=min(float(shares[each.name]), 0.999999))
                for each in system.subscribers
            ),
        )
        seen = td.record(system, seed=1, duration_s=60.0).tables
        who = seen["publications"].to_pandas()[["event", "publisher"]]
        pairs = who.merge(seen["deliveries"].to_pandas())[["publisher", "subscriber"]]
        wanted_by = pairs.drop_duplicates().groupby("publisher")["subscriber"].agg(list).to_dict()
        return cls(known=Known(system=promised, expected=expected), wanted_by=wanted_by)

    @property
    def system(self) -> System:
        """As it is known."""
        return self.known.system

    def block(self, seed: int, system: System | None = None, seconds: float = BLOCK_S) -> Block:
        """Some hours of the system, or of another that has taken its place, at some seed."""
        recording = td.record(
            system or self.system, seed=seed, duration_s=seconds + AFTER_S, probes_per_s=1e-3
        )
        return block_of(self.system, self.wanted_by, recording)

    def judged(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Alarm]]:
        """All alarms that begin while blocks follow each other, with the number of their look."""
        counted = tally([], [each.name for each in self.system.subscribers])
        lasting: tuple[Alarm, ...] = ()
        longer: Characterisation | None = None
        number, later_ns = 0, 0
        kept_ns = round(WINDOWS_S["6h"] * 1e9)
        for block in blocks:
            hour_ns = min(round(HOUR_S * 1e9), block.length_ns)
            hours = list(found_in(self.system, block, hour_ns))
            for part, (found, stretch) in enumerate(
                zip(
                    found_in(self.system, block, LOOK_NS),
                    stretches_in(self.system, block, later_ns),
                    strict=True,
                )
            ):
                counted = counted.then(stretch).since(stretch.until_ns - kept_ns)
                if part and part % round(HOUR_S / LOOK_S) == 0:
                    longer = hours[round(part * LOOK_S / HOUR_S) - 1]
                look = Look(
                    known=self.known,
                    predicted=None,
                    counted=counted,
                    newest=stretch.counts,
                    found=found,
                    longer=longer,
                    window_s=HOUR_S,
                    look_s=LOOK_S,
                    lasting=lasting,
                )
                turn = turned(lasting, alarms(look), look.at_ns)
                lasting = turn.alarms
                yield from ((number, alarm) for alarm in turn.begun)
                number += 1
            longer = hours[-1]
            later_ns += block.length_ns


def stationary(name: str, days: int, seed: int) -> dict[str, Any]:
    """Play days on which nothing changes; gives how many had an alarm, and of which kinds."""
    watched, begun = Watched.of(SYSTEMS[name]()), time.process_time()
    blocks = round(24 * HOUR_S / BLOCK_S)
    alarming: list[dict[str, Any]] = []
    for day in range(days):
        first = (seed + day) * blocks  # no two days share a seed
        told = [
            each for _, each in watched.judged(map(watched.block, range(first, first + blocks)))
        ]
        if told:
            alarming.append({"seed": seed + day, "alarms": [each.sentence() for each in told]})
    found = {
        "system": name,
        "days": days,
        "first_seed": seed,
        "alarming": alarming,
        "cpu_s_a_day": round((time.process_time() - begun) / max(days, 1), 1),
    }
    print(json.dumps(found), flush=True)
    return found


def most_alarming(alarming: int, days: int) -> float:
    """The share of days that has an alarm at most, with 99 % (Clopper and Pearson, one-sided)."""
    return float(stats.beta.ppf(0.99, alarming + 1, days - alarming)) if alarming < days else 1.0


def summary(days: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All days together, and those of each system, as parts of any number of runs have them."""
    together: dict[str, Any] = {}
    for name in dict.fromkeys(["all", *(each["system"] for each in days)]):
        rows = [each for each in days if name in ("all", each["system"])]
        played = sum(each["days"] for each in rows)
        alarming = sum(len(each["alarming"]) for each in rows)
        most = round(most_alarming(alarming, played), 5)
        together[name] = {"days": played, "alarming": alarming, "at_most_with_99_percent": most}
    return together


# ---- changes -------------------------------------------------------------------------------------

NAMED = {
    "rate ×1.5": "publisher ticker publishes more often",
    "service ×1.3": "broker edge is slower",
    "link delay ×2": "link hub--edge is slower",
    "loss ×5": "link hub--edge loses more",
    "consumer gone": "subscriber receives next to nothing any more",
}


def changed(system: System, change: str) -> System:
    """The system after a change."""
    (link,) = system.links  # of which one direction changes
    match change:
        case "rate ×1.5":
            return td.changed(system, [times("rate", "ticker", 1.5)])
        case "service ×1.3":
            return td.changed(system, [times("service", "edge", 1.3)])
        case "link delay ×2":
            there = replace(link.there, delay=Exponential(mean_s=2.0 * link.there.delay.mean_s))
            return replace(system, links=(replace(link, there=there),))
        case "loss ×5":
            there = replace(link.there, reliability=1.0 - 5.0 * (1.0 - link.there.reliability))
            return replace(system, links=(replace(link, there=there),))
    return system


def planted(change: str, seeds: range) -> dict[str, Any]:
    """Plant a change many times; gives how often it, and nothing else, was named by two looks."""
    watched = Watched.of(line("20ms", "4ms", "20ms", "200ms"))
    first, right, others = 0, 0, Counter[str]()
    for seed in seeds:
        before = watched.block(2 * seed, seconds=STEADY_S)
        after = watched.block(2 * seed + 1, changed(watched.system, change), 2 * LOOK_S)
        if change == "consumer gone":
            rows = after.outcomes
            stays = rows["who"] != 1  # all but the second subscriber, sailor
            got = {each: rows[each] & stays for each in ("delivered", "on_time")}
            after = replace(after, outcomes={**rows, **got})
        begun = list(watched.judged((before, after)))
        looks = round(STEADY_S / LOOK_S)
        named = {each.what for number, each in begun if number >= looks and each.kind == CHANGED}
        early = {each.what for number, each in begun if number < looks}
        right += named == {NAMED[change]} and not early
        first += any(number == looks and each.what == NAMED[change] for number, each in begun)
        others.update((named - {NAMED[change]}) | early)
    print(
        f"{change}: named alone in {right} of {len(seeds)}, by the first look in {first}; "
        f"others named: {dict(others)}",
        flush=True,
    )
    return {
        "change": change, "seeds": len(seeds), "named": right, "by_first_look": first,
        "others": dict(others),
    }  # fmt: skip


# ---- checking ------------------------------------------------------------------------------------


def check(seed: int) -> None:
    """Hold what is counted here of a minute against what Spark counts of the same rows."""
    from tidings.traces.reading import read_traces
    from tidings.traces.session import spark_session
    from tidings.watching.staging import TIMES

    watched = Watched.of(SYSTEMS["slow links"]())
    recording = td.record(watched.system, seed=seed, duration_s=LOOK_S + AFTER_S)
    until_ns = recording.from_ns + LOOK_NS
    with tempfile.TemporaryDirectory() as place, spark_session("local[2]", small=True) as spark:
        for name, table in recording.tables.items():
            rows = table.to_pandas()
            if name != "probes":  # which say the same of links
                path = Path(place) / f"{name}.parquet"
                rows[rows[TIMES[name]] < until_ns].to_parquet(path, index=False)
        window = {"version": 1, "from_ns": recording.from_ns, "until_ns": until_ns}
        (Path(place) / "traces.json").write_text(json.dumps(window), encoding="utf-8")
        counted = td.characterise(read_traces(spark, place), base=watched.system).parameters
    block = block_of(watched.system, watched.wanted_by, recording)
    (found,) = found_in(watched.system, block, LOOK_NS)
    here = pd.DataFrame(found.parameters).set_index("path")
    there = counted.assign(path=counted["path"].map(_one_way)).set_index("path")
    for path, row in here.iterrows():
        spark_row = there.loc[path]
        print(f"{path}: {row['estimate']:.9g} ± {row['standard_error']:.4g} of {row['count']}")
        for column in ("estimate", "standard_error", "count"):
            if not np.isclose(row[column], spark_row[column], rtol=1e-6):
                sys.exit(f"{path} {column}: {row[column]!r}, by Spark {spark_row[column]!r}")


def _one_way(path: str) -> str:
    """A link under its ends in the order in which it is crossed."""
    of, name, *rest = path.split(".")
    if of == "links" and rest[0] == "back":
        return ".".join((of, "--".join(name.split("--")[::-1]), *rest[1:]))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=100, help="of each system")
    parser.add_argument("--changes", type=int, default=100, help="of each kind")
    parser.add_argument("--system", choices=list(SYSTEMS), action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="only compare counts with Spark's")
    parser.add_argument("--into", type=Path, help="append what each system gave to this file")
    parser.add_argument("--from", dest="earlier", type=Path, help="days that were played into it")
    add_write_option(parser, "alarms")
    args = parser.parse_args()
    if args.check:
        check(args.seed)
        return
    changes = range(args.seed, args.seed + args.changes)
    table = [planted(each, changes) for each in NAMED] if changes else []
    days: list[Mapping[str, Any]] = []
    if args.earlier is not None:
        days += map(json.loads, args.earlier.read_text(encoding="utf-8").splitlines())
    for each in (args.system or SYSTEMS) if args.days else ():
        days.append(stationary(each, args.days, args.seed))
        if args.into is not None:
            with args.into.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(days[-1]) + "\n")
    print(json.dumps(summary(days), indent=1))
    if args.write:
        record("alarms", {"changes": table, "summary": summary(days), "days": days})


if __name__ == "__main__":
    main()
