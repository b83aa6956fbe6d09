"""Precedence over the other programs of this machine while a run lasts, where that is granted."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def precedence() -> Iterator[bool]:
    """Run what is inside before all other programs; tells whether the system grants that.

    It holds for this thread and for the threads and processes that it starts, so for servers too.
    Real time, not niceness: Linux may weigh sessions against each other whatever their programs'
    niceness, and every server has a session of its own. The least priority of real time will do.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield False
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    least = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
    try:
        os.sched_setscheduler(0, os.SCHED_RR, least)
    except OSError:  # only who may administer the machine may do that
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, *before)


@contextmanager
def without_collection() -> Iterator[None]:
    """Run what is inside without pauses of several milliseconds to collect garbage.

    It is collected afterwards; a run is bounded, and so is what it leaves.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
