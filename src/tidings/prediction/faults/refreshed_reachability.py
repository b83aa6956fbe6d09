"""Ways around what is down, with brokers that have their subscriptions back at the next refresh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidings.prediction.faults.components import Path
from tidings.prediction.faults.disjoint_products import Network
from tidings.prediction.faults.processes import steady
from tidings.prediction.faults.reachability import Reachability, Reached
from tidings.prediction.faults.refresh import Refresh

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


def refreshed(network: Network, usual: Path, refresh: Refresh) -> Reached:
    """P[there is a way all of whose brokers know the subscription]: the middle of two bounds.

    A broker that knows it was up at the last refresh and ever since: with that, and links up now,
    connectivity is an upper bound. A way that was up at the last refresh too is enough: a lower
    one. Where a subscription times out before the next refresh, nothing is known from then on.
    """
    components = network.components
    of_brokers = {each for needed in components.of_broker for each in needed}
    lasts_s = refresh.every_s
    if refresh.timeout_s is not None:
        lasts_s = min(lasts_s, refresh.timeout_s)
    sharp = refresh.timeout_s is not None and refresh.timeout_s <= refresh.every_s
    low = high = off = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        since_s = 0.5 * lasts_s * (1.0 + float(node))
        part = 0.5 * float(weight) * lasts_s / refresh.every_s
        bounds = []
        for links_twice in (True, False):
            processes = tuple(
                steady(
                    float(each.stays_up(since_s))
                    if index in of_brokers
                    else float(each.up_twice(since_s))
                    if links_twice
                    else each.availability
                )
                for index, each in enumerate(components.processes)
            )
            then = replace(network, components=replace(components, processes=processes))
            bounds.append(Reachability(network=then).between(usual))
        low += part * bounds[0].share
        high += part * bounds[0 if sharp else 1].share
        off = max(off, bounds[0].error, bounds[1].error)
    return Reached(share=0.5 * (low + high), error=0.5 * (high - low) + off, method="bounds")
