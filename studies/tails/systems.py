"""Systems with few misses, by kind, and the lifetimes at which about one in 1e-3 or 1e-4 is missed.

Where the share of misses is known in closed form the lifetime follows from it; elsewhere it was
read off a long plain simulation once, to two digits.
"""

from __future__ import annotations

import itertools
import math

from scipy import optimize, special

from tidings.model.reading import loads
from tidings.model.system import System

RARE = (1e-3, 1e-4)


def erlang_miss(hops: int, rate_per_s: float, t_s: float) -> float:
    """Compute P[delay > t] over equal M/M/1 brokers in line, each of sojourn rate μ − λ."""
    return float(special.gammaincc(hops, rate_per_s * t_s))


def erlang_lifetime(hops: int, rate_per_s: float, miss: float) -> float:
    """Compute the lifetime, in seconds, that a share of events misses in a line of M/M/1."""
    return float(special.gammainccinv(hops, miss)) / rate_per_s


def line(hops: int, lifetime_s: float, service: str = "{exponential: 10ms}") -> System:
    """Build a line of brokers, a Poisson publisher of 60/s before and a subscriber behind it."""
    names = [f"b{index}" for index in range(hops)]
    links = ", ".join(f"{{between: [{a}, {b}]}}" for a, b in itertools.pairwise(names))
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime_s:.9f}s
        brokers: {{{", ".join(f"{name}: {{service: {service}}}" for name in names)}}}
        links: [{links}]
        publishers: {{p: {{at: b0, every: {{rate: 60/s}}, content: {{event: {{k: 1}}}}}}}}
        subscribers: {{s: {{at: {names[-1]}, wants: {{k: 1}}}}}}
        """
    )


def constant_miss(load: float, waits: float) -> float:
    """Compute P[wait > x services] in M/D/1 (Erlang's sum), for x up to some 30."""
    places = int(waits)
    terms = [
        (load * (place - waits)) ** place / math.factorial(place) * math.exp(load * (waits - place))
        for place in range(places + 1)
    ]
    return 1.0 - (1.0 - load) * math.fsum(terms)


def constant(miss: float) -> System:
    """Build a broker of constant services at load .6 that a share of events is late at."""
    waits = optimize.brentq(lambda x: constant_miss(0.6, x) - miss, 0.1, 20.0)
    return line(1, (1.0 + waits) * 0.010, "10ms")


def bursty(miss: float) -> System:
    """Build two brokers behind a hyperexponential publisher (squared variation 9)."""
    lifetime_s = {1e-3: 0.26, 1e-4: 0.35}[miss]
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime_s}s
        brokers: {{a: {{service: {{exponential: 10ms}}}}, b: {{service: {{exponential: 8ms}}}}}}
        links: [{{between: [a, b]}}]
        publishers:
          p:
            at: a
            every: {{hyperexponential: [{{p: 0.9, mean: 11.111ms}}, {{p: 0.1, mean: 100ms}}]}}
            content: {{event: {{k: 1}}}}
        subscribers: {{s: {{at: b, wants: {{k: 1}}}}}}
        """
    )


def tree(miss: float) -> System:
    """Build a tree of seven brokers with random delays of links, three publishers, four leaves."""
    lifetime_s = {1e-3: 0.30, 1e-4: 0.38}[miss]
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime_s}s
        brokers:
          root: {{service: {{exponential: 6ms}}}}
          l: {{service: {{exponential: 8ms}}}}
          r: {{service: {{erlang: {{mean: 9ms, shape: 2}}}}}}
          ll: {{service: {{exponential: 10ms}}}}
          lr: {{service: 8ms}}
          rl: {{service: {{exponential: 9ms}}}}
          rr: {{service: {{exponential: 5ms}}}}
        links:
          - {{between: [root, l], delay: {{exponential: 5ms}}}}
          - {{between: [root, r], delay: {{exponential: 5ms}}}}
          - {{between: [l, ll], delay: {{exponential: 3ms}}}}
          - {{between: [l, lr], delay: {{uniform: [1ms, 9ms]}}}}
          - {{between: [r, rl], delay: {{exponential: 4ms}}}}
          - {{between: [r, rr], delay: {{exponential: 10ms}}}}
        publishers:
          p: {{at: root, every: {{rate: 30/s}}, content: {{event: {{k: 1}}}}}}
          q: {{at: ll, every: {{rate: 20/s}}, content: {{event: {{k: 2}}}}}}
          o: {{at: rr, every: 50ms, content: {{event: {{k: 3}}}}}}
        subscribers:
          a: {{at: ll, wants: {{}}}}
          b: {{at: lr, wants: {{}}}}
          c: {{at: rl, wants: {{}}}}
          d: {{at: rr, wants: {{}}}}
        """
    )


def failing(miss: float) -> System:
    """Build a line of three whose middle broker fails for a second now and then, with buffers."""
    every = {1e-3: "2000s", 1e-4: "20000s"}[miss]
    return loads(
        f"""
        tidings: 1
        lifetime: 1s
        recovery: {{scheme: buffering}}
        brokers:
          a: {{service: {{exponential: 5ms}}}}
          b:
            service: {{exponential: 5ms}}
            failure: {{up: {{exponential: {every}}}, down: {{exponential: 2s}}}}
          c: {{service: {{exponential: 5ms}}}}
        links: [{{between: [a, b]}}, {{between: [b, c]}}]
        publishers: {{p: {{at: a, every: {{rate: 60/s}}, content: {{event: {{k: 1}}}}}}}}
        subscribers: {{s: {{at: c, wants: {{k: 1}}}}}}
        """
    )


def systems(miss: float) -> dict[str, System]:
    """Build all systems of one share of misses."""
    lines = {
        f"M/M/1, {hops} in line": line(hops, erlang_lifetime(hops, 40.0, miss))
        for hops in (1, 3, 6)
    }
    return {
        **lines,
        "constant services": constant(miss),
        "bursty publisher": bursty(miss),
        "tree, random links": tree(miss),
        "failing broker, buffers": failing(miss),
    }
