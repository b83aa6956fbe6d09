"""What both engines said of the catalogue when it was frozen, and how far a prediction moved.

``frozen.json`` has for each system what was predicted and what was simulated, each with its CPU
time; of a large system a dozen subscribers, and the share over all. A prediction that was refused
has the refusal instead.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tidings as td
from systems.describing import Case
from tidings.errors import UnstableError, UnsupportedError
from tidings.model.outcome import Outcome

FILE = Path(__file__).parent / "frozen.json"
MOST_SUBSCRIBERS = 12
PREDICTED = ("on_time", "on_time_se", "delay_mean_s", "delay_p95_s")
SIMULATED = ("on_time", "on_time_se", "delay_mean_s", "delay_p95_s")
MOVED = 5e-4  # of a share: more is another answer
PROMISED = 0.005  # of a share: what a prediction may be off by
FAR = 4.5  # standard errors, which chance alone does not reach among so many rows

Record = dict[str, Any]


def load() -> dict[str, Record]:
    """Everything frozen, by the name of the system."""
    if not FILE.exists():
        return {}
    found: dict[str, Record] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def save(records: Mapping[str, Record]) -> None:
    """Write everything, a line for each system, so that a change shows where it is."""
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(each, ensure_ascii=False)}"
        for name, each in records.items()
    ]
    part = FILE.with_suffix(".part")
    part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    part.replace(FILE)  # never half of it


def predict_now(case: Case) -> Record:
    """The prediction of a system as it is frozen."""
    return _timed(lambda: td.predict(case.make()), PREDICTED)


def simulate_now(case: Case) -> Record:
    """The simulation of a system as it is frozen."""
    found = _timed(lambda: td.simulate(case.make(), **case.simulation), SIMULATED)
    return found | {"options": case.simulation}


def _timed(work: Callable[[], Outcome], columns: tuple[str, ...]) -> Record:
    begun = time.process_time()
    try:
        outcome = work()
    except (UnsupportedError, UnstableError) as error:
        return {"refused": str(error), "machine": _machine()}
    cpu_s = time.process_time() - begun
    return {
        "on_time": _rounded(outcome.on_time),
        "cpu_s": round(cpu_s, 3),
        "machine": _machine(),
        "rows": {
            str(row["subscriber"]): [_rounded(row[column]) for column in columns]
            for _, row in _some(outcome.subscribers).iterrows()
        },
    }


def _some(subscribers: pd.DataFrame) -> pd.DataFrame:
    """At most a dozen of the subscribers, evenly spaced."""
    last = len(subscribers) - 1
    kept = np.linspace(0, last, min(last + 1, MOST_SUBSCRIBERS)).round().astype(int)
    return subscribers.iloc[kept]


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.6g}")


def _machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The on-time share of one subscriber: predicted when frozen and now, and simulated."""

    subscriber: str
    before: float | None  # None: refused
    now: float
    now_se: float
    by: str  # which engine answers now, "theory" or "simulation"
    simulated: float | None
    simulated_se: float

    @property
    def moved(self) -> float:
        """How far the prediction is from the frozen one; 0 where there is none."""
        return 0.0 if self.before is None else abs(self.now - self.before)

    def error(self, share: float | None) -> float:
        """How far a share is from the simulated one, NaN where either is not known."""
        if share is None or self.simulated is None:
            return math.nan
        return abs(share - self.simulated)

    @property
    def holds(self) -> bool:
        """Whether the answer of now is right as far as what is frozen tells.

        That of a simulation must agree with the frozen one. That of theory must be the frozen one,
        or one that the simulation cannot tell from the truth; or, where that was refused or wrong,
        it must be right, or less wrong than it was.
        """
        noise = FAR * math.hypot(self.now_se, self.simulated_se)
        if self.error(self.now) <= noise and (self.by == "simulation" or self.moved <= PROMISED):
            return True
        if self.by == "simulation":
            return False
        allowed = PROMISED + FAR * self.simulated_se
        if self.before is None:
            return self.error(self.now) <= allowed
        if self.moved <= MOVED:
            return True
        return self.error(self.before) > allowed and self.error(self.now) < self.error(self.before)

    def __str__(self) -> str:
        before = "refused" if self.before is None else f"{self.before:.4f}"
        simulated = "nothing" if self.simulated is None else f"{self.simulated:.4f}"
        return (
            f"{self.subscriber}: {before} when frozen, {self.now:.4f} now by {self.by}, "
            f"{simulated} ± {self.simulated_se:.4f} simulated"
        )


def rows(record: Record, outcome: Outcome) -> list[Row]:
    """The subscribers frozen, beside what is predicted of them now."""
    before = record["predicted"].get("rows", {})
    simulated = record.get("simulated", {}).get("rows", {})
    now = outcome.subscribers.set_index("subscriber")
    found = []
    for name in simulated or before:
        share, se, *_ = simulated.get(name, (None, None))
        row = now.loc[name]
        found.append(
            Row(
                subscriber=name,
                before=before[name][0] if name in before else None,
                now=float(row["on_time"]),
                now_se=float(np.nan_to_num(row["on_time_se"])),
                by=str(row.get("by", "theory")),
                simulated=share,
                simulated_se=se or 0.0,
            )
        )
    return found
