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
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from tidings.model.outcome import Outcome
from tidings.model.standard_errors import share_se
from tidings.model.system import System
from tidings.watching import judging, standing
from tidings.watching.counts import Counts, Stretch
from tidings.watching.standing import Look, alarms, predicted_shares
from tidings.watching.state import CHANGED, Alarm
from tidings.watching.telling import turned

LOOK_S, HOUR_S = 60.0, 3600.0
LOOK_NS = round(LOOK_S * 1e9)
STEADY_S = 600.0  # before a change
AFTER_S = 30.0  # recorded after an hour, so that its events are through
LINE = """
tidings: 1
lifetime: {lifetime}
brokers:
  hub: {{service: {{exponential: {service}}}}}
  edge: {{service: {{exponential: {service}}}}}
links:
  - {{between: [hub, edge], delay: {{exponential: {delay}}}, reliability: 0.99}}
publishers:
  ticker: {{at: hub, every: {{exponential: {every}}}, content: {{event: {{topic: stock}}}}}}
  mast: {{at: edge, every: {{exponential: {every}}}, content: {{event: {{topic: wind}}}}}}
subscribers:
  trader: {{at: edge, wants: {{topic: stock}}}}
  sailor: {{at: hub, wants: {{topic: wind}}}}
"""


def line(every: str, service: str, delay: str, lifetime: str) -> System:
    """Make two brokers with events in both directions."""
    return td.loads(LINE.format(every=every, service=service, delay=delay, lifetime=lifetime))


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
}


# ---- counting ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """The rows of an hour, say, with times (``at``) in nanoseconds since it began."""

    from_ns: int
    length_ns: int
    publications: pd.DataFrame  # publisher, at
    hops: pd.DataFrame  # broker, at, wait_s, service_s
    crossings: pd.DataFrame  # arc, at: sent, there: arrived, if at all; delay_s
    outcomes: pd.DataFrame  # subscriber, at: published, delivered, on_time


def hour_of(system: System, wanted_by: Mapping[str, list[str]], recording: Any) -> Hour:
    """Take from a recording what is counted; all names as numbers, as texts take their time."""
    begin, tables = recording.from_ns, recording.tables
    published, hops, received = (tables[each] for each in ("publications", "hops", "deliveries"))
    brokers = [each.name for each in system.brokers]
    texts = pa.chunked_array([c for t in (published, hops, received) for c in t["event"].chunks])
    events = pc.dictionary_encode(texts).combine_chunks().indices.to_numpy()
    of_published, of_hops, of_received = np.split(events, np.cumsum([len(published), len(hops)]))
    rows = pd.DataFrame(
        {name: hops[name].to_numpy() for name in ("arrived_ns", "started_ns", "left_ns")}
    )
    rows["event"], rows["broker"] = of_hops, _numbers(hops["broker"], brokers)
    rows["at"] = rows["arrived_ns"] - begin
    lists = hops["sent_to"].combine_chunks()
    sent = rows.iloc[pc.list_parent_indices(lists).to_numpy()]
    sent = sent[["event", "broker", "left_ns", "at"]].rename(columns={"broker": "source"})
    sent["broker"] = _numbers(pc.list_flatten(lists), brokers)
    both = sent[sent["broker"] >= 0].merge(rows[["event", "broker", "arrived_ns"]], how="left")
    wanted = pd.DataFrame(
        {name: published[name].to_numpy() for name in ("published_ns", "lifetime_ns")}
    )
    publishers = [each.name for each in system.publishers]
    subscribers = [each.name for each in system.subscribers]
    wanted["event"], wanted["at"] = of_published, wanted["published_ns"] - begin
    wanted["publisher"] = _numbers(published["publisher"], publishers)
    pairs = pd.DataFrame(
        [
            (publishers.index(publisher), subscribers.index(each))
            for publisher, those in wanted_by.items()
            for each in those
        ],
        columns=["publisher", "subscriber"],
    )
    got = pd.DataFrame({"event": of_received, "received_ns": received["received_ns"].to_numpy()})
    got["subscriber"] = _numbers(received["subscriber"], subscribers)
    outcomes = wanted.merge(pairs).merge(
        got.drop_duplicates(["event", "subscriber"]), how="left", on=["event", "subscriber"]
    )
    late_ns = outcomes["received_ns"] - outcomes["published_ns"] - outcomes["lifetime_ns"]
    return Hour(
        from_ns=begin,
        length_ns=recording.until_ns - begin - round(AFTER_S * 1e9),
        publications=wanted[["publisher", "at"]],
        hops=rows[["broker", "at"]].assign(
            wait_s=(rows["started_ns"] - rows["arrived_ns"]) / 1e9,
            service_s=(rows["left_ns"] - rows["started_ns"]) / 1e9,
        ),
        crossings=both[["at"]].assign(
            arc=both["source"] * len(brokers) + both["broker"],
            there=both["arrived_ns"] - begin,
            delay_s=(both["arrived_ns"] - both["left_ns"]) / 1e9,
        ),
        outcomes=outcomes[["subscriber", "at"]].assign(
            delivered=outcomes["received_ns"].notna(), on_time=late_ns <= 0
        ),
    )


def _numbers(column: Any, names: list[str]) -> npt.NDArray[np.int64]:
    """Names as their places in a list; -1 where they are not in it."""
    return pc.fill_null(pc.index_in(column, pa.array(names)), -1).to_numpy()


def learnt(system: System, hour: Hour, part_ns: int) -> pd.DataFrame:
    """Rates, services, delays and reliabilities as each part by itself tells them."""
    seconds = part_ns / 1e9
    publishers, brokers = ([each.name for each in of] for of in (system.publishers, system.brokers))
    rate_names = {n: f"publishers.{each}.rate" for n, each in enumerate(publishers)}
    service_names = {n: f"brokers.{each}.service" for n, each in enumerate(brokers)}
    arcs = {n: "--".join(each) for n, each in enumerate(itertools.product(brokers, repeat=2))}
    rows = hour.publications.assign(part=hour.publications["at"] // part_ns).sort_values("at")
    rows["between"] = rows.groupby(["part", "publisher"])["at"].diff() / 1e9
    rates = rows.groupby(["part", "publisher"])["between"].agg(["size", "mean", "var"])
    rates = rates.reset_index()
    scv = (rates["var"] / rates["mean"] ** 2).fillna(1.0)
    crossed = hour.crossings.assign(
        part=hour.crossings["at"] // part_ns, came=hour.crossings["there"] // part_ns
    )
    seen = crossed["came"] == crossed["part"]  # what arrives in another part is lost to this one
    lost = (~seen).groupby([crossed["part"], crossed["arc"]]).sum()
    arrived = crossed.groupby(["came", "arc"]).size().reindex(lost.index, fill_value=0)
    shares = pd.DataFrame({"lost": lost, "tried": lost + arrived}).reset_index()
    hops = hour.hops.assign(part=hour.hops["at"] // part_ns)
    delay_names = {n: f"links.{each}.delay" for n, each in arcs.items()}
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "part": rates["part"],
                    "path": rates["publisher"].map(rate_names),
                    "estimate": rates["size"] / seconds,
                    "standard_error": np.sqrt(rates["size"] * scv) / seconds,
                    "count": rates["size"],
                }
            ),
            _means(hops, "broker", "service_s", service_names),
            _means(crossed[seen], "arc", "delay_s", delay_names),
            pd.DataFrame(
                {
                    "part": shares["part"],
                    "path": "links." + shares["arc"].map(arcs) + ".reliability",
                    "estimate": 1.0 - shares["lost"] / shares["tried"],
                    "standard_error": share_se(shares["lost"], shares["tried"]),
                    "count": shares["tried"],
                }
            ),
        ]
    )


def _means(rows: pd.DataFrame, key: str, time: str, names: Mapping[int, str]) -> pd.DataFrame:
    sums = rows.groupby(["part", key])[time].agg(["mean", "std", "count"]).reset_index()
    return pd.DataFrame(
        {
            "part": sums["part"],
            "path": sums[key].map(names),
            "estimate": sums["mean"],
            "standard_error": sums["std"] / np.sqrt(sums["count"]),
            "count": sums["count"],
        }
    )


def found_in(system: System, hour: Hour, part_ns: int) -> Iterator[Characterisation]:
    """What is learnt of each part of an hour, with what waits, as characterisation gives it."""
    hops = hour.hops.assign(part=hour.hops["at"] // part_ns).groupby(["part", "broker"])
    waits = pd.DataFrame(
        {
            "arrivals_per_s": hops.size() / (part_ns / 1e9),
            "service_mean_s": hops["service_s"].mean(),
            "wait_mean_s": hops["wait_s"].mean(),
        }
    ).reset_index()
    waits["broker"] = waits["broker"].map(dict(enumerate(each.name for each in system.brokers)))
    rows = learnt(system, hour, part_ns)
    numbers, waiting = (dict(iter(each.groupby("part"))) for each in (rows, waits))
    for part in range(hour.length_ns // part_ns):
        begin = hour.from_ns + part * part_ns
        measured = SimpleNamespace(
            brokers=waiting.get(part, waits.head(0)),
            provenance={"from_ns": begin, "until_ns": begin + part_ns},
        )
        yield cast(
            "Characterisation",
            SimpleNamespace(system=system, parameters=numbers[part], measured=measured),
        )


def stretches_in(system: System, hour: Hour) -> list[Stretch]:
    """What became of the events of every minute."""
    names = [each.name for each in system.subscribers]
    rows = hour.outcomes.assign(part=hour.outcomes["at"] // LOOK_NS)
    sums = rows.groupby(["part", "subscriber"], observed=True)[["delivered", "on_time"]].agg(
        ["size", "sum"]
    )
    counts: dict[int, dict[str, Counts]] = {}
    for (part, name), (wanted, delivered, _, on_time) in zip(
        sums.index, sums.to_numpy().tolist(), strict=True
    ):
        counts.setdefault(part, {})[names[name]] = Counts(
            wanted=wanted, delivered=delivered, on_time=on_time
        )
    return [
        Stretch(
            from_ns=hour.from_ns + part * LOOK_NS,
            until_ns=hour.from_ns + (part + 1) * LOOK_NS,
            counts=counts.get(part, {}),
        )
        for part in range(hour.length_ns // LOOK_NS)
    ]


# ---- days ----------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Watched:
    """A system, what is expected of it, and how it is judged from minute to minute."""

    system: System  # with promises
    expected: Outcome
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
        return cls(system=promised, expected=expected, wanted_by=wanted_by)

    def hour(self, seed: int, system: System | None = None, seconds: float = HOUR_S) -> Hour:
        """An hour of the system, or of another that has taken its place, at some seed."""
        recording = td.record(system or self.system, seed=seed, duration_s=seconds + AFTER_S)
        return hour_of(self.system, self.wanted_by, recording)

    def judged(self, hours: Iterable[Hour]) -> Iterator[tuple[int, Alarm]]:
        """All alarms that begin while hours follow each other, each with the number of its look."""
        shares = predicted_shares(self.expected)
        standing.predicted_shares = lambda _: shares  # the same at every look
        past: list[Stretch] = []
        lasting: tuple[Alarm, ...] = ()
        longer: Characterisation | None = None
        number, later_ns = 0, 0
        for hour in hours:
            for found, stretch in zip(
                found_in(self.system, hour, LOOK_NS), stretches_in(self.system, hour), strict=True
            ):
                past.append(_moved(stretch, later_ns))
                past = past[-round(judging.WINDOWS_S["6h"] / LOOK_S) :]
                look = Look(
                    system=self.system,
                    expected=self.expected,
                    predicted=None,
                    stretches=past,
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
            (longer,) = found_in(self.system, hour, hour.length_ns)
            later_ns += hour.length_ns


def _moved(stretch: Stretch, by_ns: int) -> Stretch:
    return replace(stretch, from_ns=stretch.from_ns + by_ns, until_ns=stretch.until_ns + by_ns)


def stationary(name: str, days: int, seed: int) -> dict[str, Any]:
    """Play days on which nothing changes; gives how many had an alarm, and of which kinds."""
    watched, begun = Watched.of(SYSTEMS[name]()), time.monotonic()
    alarming, kinds = 0, Counter[str]()
    for day in range(days):
        seeds = range(seed + 24 * day, seed + 24 * (day + 1))
        begun_alarms = [each for _, each in watched.judged(map(watched.hour, seeds))]
        alarming += bool(begun_alarms)
        kinds.update({_kind(each) for each in begun_alarms})
    most = stats.beta.ppf(0.95, alarming + 1, days - alarming) if alarming < days else 1.0
    print(
        f"{name}: {alarming} of {days} days alarmed (at most {most:.4f} of days, with 95 %); "
        f"{dict(kinds)}; {(time.monotonic() - begun) / days:.1f} s a day",
        flush=True,
    )
    return {"system": name, "days": days, "alarming": alarming, "kinds": dict(kinds)}


def _kind(alarm: Alarm) -> str:
    return alarm.kind if alarm.kind != CHANGED else alarm.what.replace(alarm.where[0], "...")


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
            return td.changed(system, ["rate ticker x1.5"])
        case "service ×1.3":
            return td.changed(system, ["service edge x1.3"])
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
        before = watched.hour(2 * seed, seconds=STEADY_S)
        after = watched.hour(2 * seed + 1, changed(watched.system, change), 2 * LOOK_S)
        if change == "consumer gone":
            rows, sailor = after.outcomes, 1  # the second subscriber
            got = rows[["delivered", "on_time"]].where(rows["subscriber"] != sailor, False)
            after = replace(after, outcomes=rows.assign(**got))
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
    here = learnt(watched.system, hour_of(watched.system, watched.wanted_by, recording), LOOK_NS)
    here = here[here["part"] == 0].set_index("path")
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
    add_write_option(parser, "alarms")
    args = parser.parse_args()
    if args.check:
        check(args.seed)
        return
    changes = range(args.seed, args.seed + args.changes)
    table = [planted(each, changes) for each in NAMED] if changes else []
    days = [stationary(each, args.days, args.seed) for each in args.system or SYSTEMS if args.days]
    if args.write:
        record("alarms", {"changes": table, "days": days})


if __name__ == "__main__":
    main()
