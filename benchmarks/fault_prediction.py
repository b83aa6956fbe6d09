"""Predicting failing brokers and links: CPU time against the size of the network.

Random trees and random graphs of average degree four, as in ``failures.py`` but of any size, with
ten topics and forty subscribers, under every scheme. *Method* is what the prediction chose for most
ways, *error* how far the worst way can be off (of sampled ones: a standard error), by its own word.
A scheme that takes longer than the limit is not tried on larger networks.

    python benchmarks/fault_prediction.py [--write] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from failures import SCHEMES, paper_system
from recording import add_write_option, record

from tidings.prediction.predict import predict

SIZES = (5, 10, 20, 50, 100)
SUBSCRIBERS = 40
LIMIT_S = 30.0


def measure(scheme: str, *, tree: bool, brokers: int, seed: int) -> dict[str, Any]:
    """CPU seconds of one prediction, and how it came about."""
    system = paper_system(scheme, tree=tree, seed=seed, brokers=brokers, subscribers=SUBSCRIBERS)
    begun = time.process_time()
    found = predict(system, delays=False, by="theory")
    cpu_s = time.process_time() - begun
    methods = found.provenance["faults"]["methods"]
    most = max(methods, key=lambda row: row["ways"], default=None)
    return {
        "network": "tree" if tree else "graph",
        "scheme": scheme,
        "brokers": brokers,
        "cpu_s": round(cpu_s, 3),
        "on_time": round(found.on_time, 4),
        # A product of availabilities is all that a static scheme without refresh needs.
        "method": most["method"] if most else "exact",
        "ways": sum(row["ways"] for row in methods) if methods else None,
        "of_these": most["ways"] if most else None,
        # None where a method does not know how far it is off.
        "error": None
        if any(row["error"] is None for row in methods)
        else max((row["error"] for row in methods), default=0.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="CPU seconds")
    add_write_option(parser, "fault_prediction")
    args = parser.parse_args()
    predict(
        paper_system("buffering", tree=True, seed=1), delays=False, by="theory"
    )  # imports are not measured
    rows: list[dict[str, Any]] = []
    print("network  scheme            brokers   CPU s  on time    error  method")
    for tree in (True, False):
        for scheme in SCHEMES[:2] if tree else SCHEMES:  # in a tree there is nothing to bypass
            for brokers in SIZES:
                row = measure(scheme, tree=tree, brokers=brokers, seed=args.seed)
                rows.append(row)
                ways = f" ({row['of_these']} of {row['ways']} ways)" if row["ways"] else ""
                error = "unknown" if row["error"] is None else f"{row['error']:.2g}"
                print(
                    f"{row['network']:8} {scheme:16} {brokers:8} {row['cpu_s']:7.2f} "
                    f"{row['on_time']:8.4f} {error:>8}  {row['method']}{ways}",
                    flush=True,
                )
                if row["cpu_s"] > args.limit:
                    break
    if args.write:
        record("fault_prediction", {"rows": rows})


if __name__ == "__main__":
    main()
