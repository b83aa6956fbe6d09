"""Small systems that fail, as text, and what theory says of them; shared by tests."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.linalg import expm

from tidings.model.reading import loads

PERIOD_S = 100.0  # of every component: short, so that a run sees many failures


def failing(availability):
    return f"failure: {{availability: {availability}, period: {PERIOD_S}s}}"


def rates(availability):
    """Failures and repairs per second."""
    return 1 / (availability * PERIOD_S), 1 / ((1 - availability) * PERIOD_S)


def graph(brokers, links, recovery, *, lifetime="1h", routing="", every="{exponential: 5s}"):
    """One publisher at the first broker, one subscriber at the last."""
    return loads(text_of(brokers, links, recovery, lifetime=lifetime, routing=routing, every=every))


def text_of(
    brokers, links, recovery, *, lifetime="1h", routing="", every="{exponential: 5s}", end=None
):
    """The same as text, the subscriber at any broker.

    ``brokers`` maps names to availabilities (or to the text of a broker), ``links`` pairs of names
    to availabilities (or to the text of a link).
    """

    def text(value):
        return value if isinstance(value, str) else "" if value == 1 else failing(value)

    names = list(brokers)
    parts = [f"{{between: [{a}, {b}], {text(v)}}}" for (a, b), v in links.items()]
    return f"""
tidings: 1
lifetime: {lifetime}
recovery: {{{recovery}}}
{f"routing: {routing}" if routing else ""}
brokers: {{{", ".join(f"{name}: {{{text(v)}}}" for name, v in brokers.items())}}}
links: [{", ".join(part.replace("], }", "]}") for part in parts)}]
publishers: {{p: {{at: {names[0]}, every: {every}, content: {{event: {{k: 1}}}}}}}}
subscribers: {{s: {{at: {end or names[-1]}, wants: {{}}}}}}
"""


def path(broker_shares, link_shares, recovery, **more):
    names = [f"b{i}" for i in range(len(broker_shares))]
    links = dict(zip(itertools.pairwise(names), link_shares, strict=True))
    return graph(dict(zip(names, broker_shares, strict=True)), links, recovery, **more)


SQUARE = {"a": 0.9, "b": 0.8, "c": 0.85, "d": 0.95}  # a-b-d and a-c-d; events follow a-b-d
SQUARE_LINKS = {("a", "b"): 0.9, ("b", "d"): 0.95, ("a", "c"): 0.85, ("c", "d"): 0.9}


def square(recovery, **more):
    return graph(SQUARE, SQUARE_LINKS, recovery, routing="{tree: [[a,b],[b,d],[a,c]]}", **more)


def generator(shares):
    """The joint chain of independent components: states are bits, 1 is up; 2ⁿ × 2ⁿ."""
    count = len(shares)
    found = np.zeros((2**count, 2**count))
    for state in range(2**count):
        for bit, share in enumerate(shares):
            fails, repairs = rates(share)
            found[state, state ^ (1 << bit)] = fails if state >> bit & 1 else repairs
        found[state, state] = -found[state].sum()
    return found


def stationary(shares):
    return np.array(
        [
            math.prod(a if state >> bit & 1 else 1 - a for bit, a in enumerate(shares))
            for state in range(2 ** len(shares))
        ]
    )


def waiting(shares):
    """A path b_0, l_1, b_1, …, components in this order, whose hops keep events: (chain, settle).

    The state is how many hops an event has passed and the components. ``settle`` gives the share
    of each state after an event has passed every hop that is up, from a law over components.
    """
    hops, size = len(shares) // 2, 2 ** len(shares)
    needed = [0b111 << (2 * hop) for hop in range(hops)]

    def passed(hop, state):
        while hop < hops and state & needed[hop] == needed[hop]:
            hop += 1
        return hop

    base = generator(shares)
    chain = np.zeros(((hops + 1) * size, (hops + 1) * size))
    for hop in range(hops):
        for state in range(size):
            if passed(hop, state) > hop:
                continue  # never at rest there
            for other in np.flatnonzero(base[state]):
                goal = passed(hop, other) * size + other
                chain[hop * size + state, goal] += base[state, other]

    def settle(law):
        found = np.zeros((hops + 1) * size)
        for state, share in enumerate(law):
            found[passed(0, state) * size + state] += share
        return found

    return chain, settle


def arrived_by(shares, law, time_s):
    """P[an event that starts now at b_0, components by ``law``, is at the end by then]."""
    chain, settle = waiting(shares)
    after = settle(law) @ expm(chain * time_s)
    return float(after[-(2 ** len(shares)) :].sum())
