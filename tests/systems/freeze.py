"""Freeze what both engines say of the catalogue: run by hand, where a change of it is wanted.

    python tests/systems/freeze.py [--only WORD ...] [--predict] [--simulate] [--missing]

Words are parts of names, or kinds. Without ``--predict`` or ``--simulate`` it does both.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # so that CPU times are those of one core
sys.path[:0] = [str(Path(__file__).resolve().parents[above]) for above in (1, 2)]

from systems import frozen  # noqa: E402
from systems.catalogue import CATALOGUE, chosen  # noqa: E402
from systems.describing import Case  # noqa: E402

ENGINES = {"predicted": frozen.predict_now, "simulated": frozen.simulate_now}
WARMING = ("M/M/1 .5 busy", "testbed, failing", "testbed, mobile", "testbed, visiting")


def warm_up() -> None:
    """Load and compile what every prediction needs, so that no system pays for it."""
    for name in WARMING:
        frozen.predict_now(CATALOGUE[name])


def keep(case: Case, engine: str, said: frozen.Record) -> None:
    """Write what an engine said of a system beside what is frozen already."""
    records = frozen.load()
    records[case.name] = {**records.get(case.name, {}), "kind": case.kind, engine: said}
    frozen.save({name: records[name] for name in CATALOGUE if name in records})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--predict", action="store_true", help="predictions only")
    parser.add_argument("--simulate", action="store_true", help="simulations only")
    parser.add_argument("--missing", action="store_true", help="only what is not frozen yet")
    args = parser.parse_args()
    wanted = {"predicted": args.predict, "simulated": args.simulate}
    asked = [engine for engine, given in wanted.items() if given]
    warm_up()
    for case in chosen(args.only):
        for engine in asked or ENGINES:
            if args.missing and engine in frozen.load().get(case.name, {}):
                continue
            said = ENGINES[engine](case)
            keep(case, engine, said)
            share = said.get("on_time", said.get("refused", "").partition("\n")[0])
            print(f"{case.name}, {engine}: {share}, {said.get('cpu_s')} CPU s", flush=True)


if __name__ == "__main__":
    main()
