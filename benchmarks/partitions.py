"""Which member has which partitions, predicted and then measured on JetStream: the 99th percentile.

Six partitions with skewed keys, three for each of two members: all ten ways are predicted, and the
best and the worst of them run on a real server, side by side, in several groups of each at once.

    python benchmarks/partitions.py [--seconds 120] [--groups 6] [--write]
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from recording import add_write_option, record

import tidings as td
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import Run, TestbedOptions
from tidings.testbed.tables import lateness

PARTITIONS, SERVICE_S, LOAD = 6, 0.025, 0.9  # load: of both members together, out of 2
SHARES = [round(1 / k / 2.45, 4) for k in range(2, PARTITIONS + 1)]  # as 1/rank
SHARES = [round(1 - sum(SHARES), 4), *SHARES]


def ways() -> dict[str, list[str]]:
    """Give all ways to have three partitions each, by those of who has the first: its owners."""
    found = {}
    for mine in itertools.combinations(range(PARTITIONS), PARTITIONS // 2):
        if 0 in mine:
            name = "".join(str(each + 1) for each in mine)
            found[name] = ["1" if each in mine else "2" for each in range(PARTITIONS)]
    return found


def system(owners: Mapping[str, Sequence[str]], groups: int = 1) -> td.System:
    """Describe groups of each way, which share the events of as many publishers."""
    publishers = {
        f"p{n}": {
            "at": "b",
            "every": {"rate": f"{LOAD / SERVICE_S}/s"},
            "content": {"event": {"x": n}},
        }
        for n in range(groups)
    }
    subscribers = {
        f"{name} {n}": {
            "at": "b",
            "wants": {"x": n},
            "processing": f"{SERVICE_S}s",
            "consumers": {
                "count": 2,
                "prefetch": 2,  # so that the next is there when one is done
                "partitions": {"count": PARTITIONS, "shares": SHARES, "owners": list(of_each)},
            },
        }
        for name, of_each in owners.items()
        for n in range(groups)
    }
    parts = {"publishers": publishers, "subscribers": subscribers, "brokers": {"b": {}}}
    return td.loads(str({"tidings": 1, "lifetime": f"{5 * SERVICE_S}s"} | parts))


def delays_s(run: Run, name: str) -> list[np.ndarray]:
    """Give the delays of each group of one way, in seconds, in order of time."""
    at_s = {each.event: run.start_s + each.at_s for each in run.published}
    found: dict[str, list[float]] = {}
    for each in run.deliveries:
        if each.event in at_s:
            subscriber = run.system.subscribers[each.subscriber].name
            found.setdefault(subscriber, []).append(each.received_s - at_s[each.event])
    return [np.array(found[each]) for each in sorted(found) if each.split()[0] == name]


def measure(seconds: float, groups: int) -> dict[str, Any]:
    """Predict all ways, then run the best and the worst."""
    predicted = td.predict(system(ways()), within=0.01).subscribers
    p99_s = dict(zip(ways(), predicted["delay_p99_s"], strict=True))
    best, worst = (choose(p99_s, key=p99_s.__getitem__) for choose in (min, max))
    pair = {name: ways()[name] for name in (best, worst)}
    run = run_testbed(system(pair, groups), TestbedOptions(duration_s=seconds, seed=3))
    rows = []
    for name in (best, worst):
        each = delays_s(run, name)
        pieces = [np.quantile(part, 0.99) for one in each for part in np.array_split(one, 4)]
        measured_s = float(np.quantile(np.concatenate(each), 0.99))
        rows.append(
            {
                "partitions of the first member": name,
                "events": sum(one.size for one in each),
                "predicted_p99_s": round(float(p99_s[name]), 4),
                "measured_p99_s": round(measured_s, 4),
                "measured_se_s": round(float(np.std(pieces, ddof=1) / len(pieces) ** 0.5), 4),
                "off": round(measured_s / p99_s[name] - 1.0, 3),
            }
        )
    return {
        "incomplete": run.incomplete,
        "relays_late_p99_s": round(lateness(run)["relay_p99_s"], 5),
        "predicted_p99_s_of_all": {name: round(float(each), 4) for name, each in p99_s.items()},
        "rows": rows,
    }


def main() -> None:
    """Print, and record where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="that servers run")
    parser.add_argument("--groups", type=int, default=6, help="of each way, at once")
    add_write_option(parser, "partitions")
    args = parser.parse_args()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    found = measure(args.seconds, args.groups)
    for row in found["rows"]:
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    print(f"relays were late by {1e3 * found['relays_late_p99_s']:.1f} ms (99th percentile)")
    if args.write:
        record("partitions", {"load_per_core": round(load, 1), **found})


if __name__ == "__main__":
    main()
