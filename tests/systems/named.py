"""Print how far predictions are off where theory alone is known to go wrong.

    python tests/systems/named.py [WORD ...] [--within 0.01]

Words are parts of names; without any, all that are named here. Each system is predicted as
``predict`` does unasked, and its worst subscriber is shown beside the long simulation that is
frozen with the catalogue. Ends with 1 if any share is further off than asked, beyond what chance
allows.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[above]) for above in (1, 2)]

import tidings as td  # noqa: E402
from systems import frozen  # noqa: E402
from systems.catalogue import CATALOGUE  # noqa: E402

NAMED = (
    "Poisson through 2 constant services",
    "Poisson through 3 constant services",
    "Poisson through 4 constant services",
    "hyperexponential through 4",
    "hyperexponential through 6",
    "hyperexponential through 10",
    "periodic to ON 5 s/OFF 5 s constant, every 1 s",
    "periodic to ON 5 s/OFF 5 s constant, every 1.3 s",
    "ON/OFF publisher as fast as its broker, exponential",
    "ON/OFF publisher as fast as its broker, constant",
    "Weibull ON of 50 s",
    "where it holds, exponential / constant, 0.3 busy",
    "where it holds, exponential / Weibull (shape .4), 0.3 busy",
    "backlogs after repairs, 0.5 busy",
    "backlogs after repairs, 0.7 busy",
    "backlogs after repairs, 0.9 busy",
    "bursts to visitors",
    "four bursty publishers at one broker",
    "three unlike bursty publishers at one broker",
    "ring of six with a chord, bypass, 0.3 busy",
    "ring of six with a chord, bypass, 0.48 busy",
    "visitors of busy brokers",
    "two unlike streams at one broker",
    "Poisson star of uniform services, 0.3 busy",
    "Poisson star of uniform services, 0.5 busy",
    "Poisson star of uniform services, 0.75 busy",
)
FORM = "{:59.59} {:>5} {:>9} {:>7} {:>10} {:>7} {:>7} {:>8}  {}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--within", type=float, default=0.01, metavar="SHARE")
    args = parser.parse_args()
    print(FORM.format("system", "row", "predicted", "error", "by", "truth", "± 95 %", "off by", ""))
    records, missed = frozen.load(), 0
    for name in NAMED:
        if args.words and not any(word in name for word in args.words):
            continue
        outcome = td.predict(CATALOGUE[name].make())
        of = outcome.subscribers.set_index("subscriber")
        worst = max(frozen.rows(records[name], outcome), key=lambda row: row.error(row.now))
        off = worst.error(worst.now)
        chance = 1.96 * worst.simulated_se
        verdict = "" if off <= args.within + chance else "too far"
        missed += bool(verdict)
        cells = (f"{worst.now:.4f}", f"{of.loc[worst.subscriber, 'error']:.4f}", worst.by)
        cells += (f"{worst.simulated or 0.0:.4f}", f"{chance:.4f}", f"{off:.4f}", verdict)
        print(FORM.format(name, worst.subscriber, *cells), flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
