"""What the simulator of nets works on: tables of records, all hung on one *world*.

Positions are all it knows. A *cell* is a place and a colour that may meet there. A cell is *plain*
if whatever takes from it takes one token and nothing else: a token that becomes available there
chooses a mode and is gone. Only tokens of the other cells are ever held and waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import NODE
from tidings.kernels.memory import Layout, constants, record

_I, _F = np.int64, np.float64


WHOLE = record(value=_I)
BIN = record(value=_I, lowest=_F, highest=_F)

# A queue: tokens in service are a heap by when they are done (of processor sharing: by how much
# work must have been done for each), those waiting a line, or a heap by priority.
QUEUE = record(
    kind=_I,
    servers=_I,
    active=_I,  # in service; of processor sharing all there are
    root=_I,
    head=_I,
    tail=_I,
    line=_I,
    work=_F,  # done for each token since the queue was last empty
    changed=_F,
    busy=_F,  # server seconds
)
FCFS, SHARING, INFINITE, PRIORITY = constants(0, 4)
# A cell: its law of service and stream; where it is plain, its choices [first, last); else its
# users [first, last): transitions and timed modes that take from it.
CELL = record(
    queue=_I,
    kind=_I,
    offset=_I,
    first_kind=_I,  # of the first services of tokens that are there in the beginning
    first_offset=_I,
    stream=_I,
    priority=_I,
    plain=_I,
    first=_I,
    last=_I,
    choice_stream=_I,
    held=_I,
    head=_I,
    tail=_I,
    arrivals=_I,
    departures=_I,
    residence=_F,
    aged=_I,  # departures of tokens that have an age
    age=_F,
)
CHOICE = record(below=_F, mode=_I)
MODE = record(
    first_take=_I,
    last_take=_I,
    first_put=_I,
    last_put=_I,
    newborn=_I,
    share_stream=_I,
    weight=_F,
    fired=_I,
)
TAKE = record(cell=_I, count=_I)
PUT = record(share=_F, cell=_I, count=_I)
# A transition that needs tokens of cells that are not plain: its modes [first, last).
TRANSITION = record(weight=_F, priority=_I, first_mode=_I, last_mode=_I, listed=_I)
# A timed mode: its law, and that of its first time if it takes nothing.
TIMED = record(mode=_I, kind=_I, offset=_I, first_kind=_I, first_offset=_I, stream=_I, listed=_I)
# A user of a cell: a transition, or a timed mode.
USER = record(is_timed=_I, number=_I)
# A token; ``left`` and ``right`` in a heap, ``next`` in a line. Born at +inf: it has no age.
TOKEN = record(next=_I, cell=_I, left=_I, right=_I, key=_F, order=_I, entered=_F, born=_F)

NUMBERS: dict[str, type] = {
    "now": _F,
    "end": _F,
    "next_sample": _F,
    "sample_every": _F,
    "samples_taken": _I,
    "queue_count": _I,  # slots of the calendar: queues, then timed modes
    "initial": _I,  # tokens that are there in the beginning
    "order": _I,  # tokens that came to a queue so far
    "most_put": _I,  # most tokens that one step can make
    "agenda_head": _I,  # tokens put but not yet arrived, a line
    "agenda_tail": _I,
    "free_token": _I,
    "free_tokens": _I,
    "candidates_listed": _I,  # transitions that may be able to fire
    "touched_listed": _I,  # timed modes that may have become able to fire, or unable
    "inherited": _F,  # birth of the first token last taken
    "conflict_stream": _I,
    "curves": _I,  # whether residence times and ages are counted in bins
    "bin_count": _I,
    "firings": _I,  # without any time passing
    "most_firings": _I,
}
TABLES: dict[str, np.dtype[Any]] = {
    "law_params": np.dtype(_F),
    "choices": CHOICE,
    "takes": TAKE,
    "puts": PUT,
    "users": USER,
    "bin_guess": np.dtype(_I),
    "bin_edges": np.dtype(_F),
    "cells": CELL,
    "queues": QUEUE,
    "modes": MODE,
    "transitions": TRANSITION,
    "timed": TIMED,
    "candidates": WHOLE,
    "touched": WHOLE,
    "tokens": TOKEN,
    "nodes": NODE,
    "streams": np.dtype(np.uint64),
    "residence_bins": BIN,  # [cell × bins + bin]
    "age_bins": BIN,
    "samples": WHOLE,  # tokens in the net at regular moments
}
LAYOUT = Layout(NUMBERS, TABLES)
# By the names above: tables.tokens(world, position) is a record, arrays.nodes(world) a whole table.
world_at = LAYOUT.world()
tables, arrays = LAYOUT.records(), LAYOUT.arrays(streams=4)

# How a run comes back.
DONE, NEEDS_ROOM, ENDLESS = 0, 1, 2
