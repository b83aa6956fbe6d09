"""One replication of a net: a world made, run to its end, growing as it must."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import UnstableError
from tidings.kernels.calendar import tournament
from tidings.kernels.memory import World
from tidings.kernels.streams import stream_states
from tidings.model import delay_grid
from tidings.petri import kernel_layout as layout
from tidings.petri.compiling import CompiledNet
from tidings.petri.kernel_firing import start_sources
from tidings.petri.kernel_run import run

FIRST_ROOM = 4096  # tokens there is room for in the beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class NetWindow:
    """How long a net is run, and what is looked at."""

    end_s: float
    samples: int = 0  # how often, at regular moments up to the end, tokens are counted
    curves: bool = True  # whether quantiles are wanted
    max_tokens: int = 1_000_000


def make_world(compiled: CompiledNet, window: NetWindow, seed: int, replication: int) -> World:
    """Make a world at time 0: tokens where they begin, sources at a stationary moment."""
    start = int(compiled.numbers["initial"])
    room = max(FIRST_ROOM, start + 2 * int(compiled.numbers["most_put"]) + 2)
    tables: dict[str, Any] = {name: np.array(table) for name, table in compiled.tables.items()}
    bins = len(compiled.cells.all) * delay_grid.BINS if window.curves else 0
    tables |= {
        "tokens": _free_tokens(room),
        "nodes": tournament(len(compiled.queue_names) + len(tables["timed"])),
        "streams": stream_states(seed, replication, compiled.stream_keys),
        "residence_bins": np.zeros(bins, dtype=layout.BIN),
        "age_bins": np.zeros(bins, dtype=layout.BIN),
        "samples": np.zeros(window.samples, dtype=layout.WHOLE),
    }
    every = window.end_s / window.samples if window.samples else np.inf
    world = layout.LAYOUT.make(
        {
            **compiled.numbers,
            "end": window.end_s,
            "sample_every": every,
            "next_sample": every,
            "curves": int(window.curves),
            "free_tokens": room,
        },
        tables,
    )
    _place_first_tokens(world, compiled)
    world.run(start_sources)
    return world


def _free_tokens(size: int, first: int = 0) -> NDArray[Any]:
    """Make free tokens, each pointing to the next, the last to none."""
    table = np.zeros(size, dtype=layout.TOKEN)
    table["next"] = np.arange(first + 1, first + size + 1)
    table["next"][-1:] = -1
    table["cell"] = -1
    return table


def _place_first_tokens(world: World, compiled: CompiledNet) -> None:
    """Put the tokens of the beginning on the agenda: they arrive at time 0."""
    owners = [
        index
        for index, cell in enumerate(compiled.cells.all)
        for _ in range(compiled.cells.tokens(cell))
    ]
    if not owners:
        return
    tokens, record = world.tables["tokens"], world.record[0]
    tokens.cell[: len(owners)] = owners
    tokens.born[: len(owners)] = np.inf
    tokens.next[len(owners) - 1] = -1
    record.agenda_head, record.agenda_tail = 0, len(owners) - 1
    record.free_token = len(owners)
    record.free_tokens -= len(owners)


def run_world(world: World, compiled: CompiledNet, window: NetWindow) -> None:
    """Run to the world's end; raises UnstableError where tokens become too many."""
    while True:
        why = world.run(run)
        if why == layout.DONE:
            return
        if why == layout.ENDLESS:
            raise UnstableError(_endless(world, compiled))
        _grow(world, compiled, window)


def _grow(world: World, compiled: CompiledNet, window: NetWindow) -> None:
    """Make room for twice as many tokens, within the limit."""
    old = len(world.tables["tokens"])
    size = min(2 * old, max(window.max_tokens, old))
    if size <= old:
        raise UnstableError(_too_many(world, compiled))
    table = np.concatenate([world.tables["tokens"], _free_tokens(size - old, old)])
    table["next"][-1] = world.record[0].free_token
    world.record[0].free_token = old
    world.record[0].free_tokens += size - old
    world.put("tokens", table)


def _too_many(world: World, compiled: CompiledNet) -> str:
    """Say that there are too many tokens: where most of them are, and which."""
    tokens = world.tables["tokens"]
    counts = np.bincount(tokens.cell[tokens.cell >= 0], minlength=len(compiled.cells.all))
    worst = int(np.argmax(counts))
    place, colour = compiled.cells.all[worst]
    return (
        f"there are {int(counts.sum()):,} tokens in the net after "
        f"{float(world.record[0].now):.6g} simulated seconds, {int(counts[worst]):,} of "
        f"them of the colour '{colour}' at the place '{place}': the net is unstable. "
        "Add servers, make the place faster, let something take its tokens, or allow "
        "more with --max-tokens"
    )


def _endless(world: World, compiled: CompiledNet) -> str:
    modes = world.tables["modes"]
    busiest = int(np.argmax(modes.fired))
    name = compiled.cells.net.transitions[compiled.cells.transition_of[busiest]].name
    return (
        f"transitions fire forever at {float(world.record[0].now):.6g} simulated seconds, "
        f"most often '{name}': immediate transitions form a cycle in which no time passes"
    )
