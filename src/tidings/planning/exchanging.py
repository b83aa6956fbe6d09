"""The cheapest sizes near some that are enough: what is dear is exchanged for what is cheap.

How much each size counts is looked at first, a little above where it is. A linear programme then
finds the cheapest sizes for which that would be enough, no further than a factor away. As far as
they are not, it is asked again with what was found there; if that does not help, nearer by. Then
all is looked at anew.

Of one queue, the logarithm of the missed share is straight in its speed; of several it nearly is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidings.model.arrays import Floats

LITTLE = 1.05  # by which factor each size is raised to see how much it counts
FARTHEST, NEAREST = 1.3, 1.05  # by which factor sizes may change until they are looked at anew
MOST_LOOKS = 12
CORRECTIONS = 4
GAIN = 0.01  # relative: what saves less is looked at from nearer
INSIDE = 0.005  # relative: of what may be missed, left over so that corrections come to an end
FEWEST = 1e-12  # missed share: fewer count as so many


def exchanged(
    sizes: Floats,
    costs: Floats,
    most: float,
    missed: Callable[[Floats], Floats],
    allowed: Floats,
    enough: Callable[[Floats], bool],
) -> Floats:
    """Find sizes, from 1 to ``most`` each, that are enough as these are, but cost less.

    ``missed`` gives the shares [subscriber] that sizes miss; those that miss no more than is
    ``allowed`` with these will not with others.
    """
    asked = missed(sizes) <= allowed
    limits = _log(allowed[asked]) - INSIDE

    def levels(point: Floats) -> Floats:
        return _log(missed(point)[asked])

    farthest = FARTHEST
    for _ in range(MOST_LOOKS):
        slopes = _slopes(sizes, levels)
        near = np.maximum(sizes / farthest, 1.0), np.minimum(sizes * farthest, most)
        point, saved = sizes, 0.0
        for _ in range(CORRECTIONS):
            within = limits - levels(point) + slopes @ point
            tried = _cheapest(costs, slopes, within, np.column_stack(near))
            if tried is None or costs @ tried >= costs @ sizes:
                break
            point = tried
            if enough(point):
                saved = float(costs @ (sizes - point) / (costs @ (sizes - 1.0)))
                sizes = point
                break
        if saved < GAIN:
            farthest = np.sqrt(farthest)
        if farthest < NEAREST:
            break
    return sizes


def _slopes(sizes: Floats, levels: Callable[[Floats], Floats]) -> Floats:
    """Compute by how much each level rises with each size [level, size]."""
    here, rises = levels(sizes), []
    for index, size in enumerate(sizes):
        raised = sizes.copy()
        raised[index] = size * LITTLE
        rises.append((levels(raised) - here) / (raised[index] - size))
    return np.column_stack(rises)


def _cheapest(costs: Floats, slopes: Floats, within: Floats, near: Floats) -> Floats | None:
    """Solve the linear programme; None where no sizes near by are enough."""
    from scipy.optimize import linprog

    answer = linprog(costs, A_ub=slopes, b_ub=within, bounds=near)
    return np.asarray(answer.x) if answer.success else None


def _log(missed: Floats) -> Floats:
    return np.log(np.maximum(missed, FEWEST))
