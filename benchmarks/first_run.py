"""A first simulation: CPU seconds with machine code that was built ahead, and compiled when called.

*First* is `tidings simulate` on the sample system with nothing kept but the library, if any;
*again* is the same once more. Each runs in a process of its own. The library is built where this
user has none, which takes minutes.

    python benchmarks/first_run.py [--write]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from help import cpu_s
from recording import add_write_option, record

import tidings as td
from tidings.kernels.building import build_library
from tidings.kernels.library import kept_library

TIDINGS = (sys.executable, "-c", "from tidings.cli.main import main; main()")
KERNELS = ("built", "compiled")


def measure(folder: Path) -> list[dict[str, Any]]:
    """Measure both, each with a cache folder of its own."""
    library = build_library()
    system = folder / "sample.yaml"
    td.save(td.market_and_weather(), system)
    rows = []
    for how in KERNELS:
        os.environ |= {"TIDINGS_KERNELS": how, "XDG_CACHE_HOME": str(folder / how)}
        if how == "built":
            shutil.copy(library, kept_library())
        words = (*TIDINGS, "simulate", str(system), "--duration", "60", "--json")
        first_s, again_s = cpu_s(words, 1), cpu_s(words, 3)
        rows.append(
            {"how": how, "first_cpu_s": round(first_s, 2), "again_cpu_s": round(again_s, 2)}
        )
    rows[0]["library_mb"] = round(library.stat().st_size / 1e6, 2)
    rows[1]["times_built"] = round(rows[1]["first_cpu_s"] / rows[0]["first_cpu_s"], 1)
    return rows


def main() -> None:
    """Print, and record where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_write_option(parser, "first_run")
    args = parser.parse_args()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder))
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    print(f"processes that wanted to run, for each core, at the beginning: {load:.1f}")
    if args.write:
        record("first_run", {"load_per_core": round(load, 1), "rows": rows})


if __name__ == "__main__":
    main()
