"""What the fault-tolerance study can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.cli import options
from tidings.model.json_text import plain

MACHINES = {"low-end": (0.90, 0.95), "high-end": (0.99, 0.999)}
TOPOLOGIES = ("tree", "graph, own trees", "graph, one tree")
SCHEMES = ("periodic", "buffering", "bypass", "bypass-buffering")
STATIC = ("periodic", "buffering")  # in a tree there is nothing to bypass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run: how many systems, how long or how precisely."""

    systems: int = 2
    replications: int = 10
    duration_s: float = 14 * 86_400.0
    every_s: float = 60.0
    machines: str = "both"
    precise: bool = False
    uptimes: list[Path] | None = None
    leave_out: list[str] | None = None
    seed: options.Seed = 1  # of the first system; the others follow

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of machines that are run."""
        return {"both": tuple(MACHINES), "none": ()}.get(self.machines, (self.machines,))

    @property
    def runs(self) -> list[tuple[int, str, str, str]]:
        """(seed, topology, machines, scheme) of every run."""
        return [
            (seed, topology, machines, scheme)
            for topology in TOPOLOGIES
            for machines in self.kinds
            for scheme in (STATIC if topology == "tree" else SCHEMES)
            for seed in range(self.seed, self.seed + self.systems)
        ]

    @property
    def plan(self) -> dict[str, Any]:
        """What is run, as plain data."""
        names = ("systems", "replications", "duration_s", "every_s", "precise", "seed")
        given = {name: getattr(self, name) for name in names}
        return dict(plain({**given, "topologies": TOPOLOGIES, "machines": self.kinds}))
