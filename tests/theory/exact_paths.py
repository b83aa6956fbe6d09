"""Laws of paths by algebra on transforms with eighty digits: slow, obvious, no grid, no inversion.

A law is a sum of terms c · e^(−az)/(z + r)^k. Products of such terms are such terms again (partial
fractions), and each is inverted by hand: c (t − a)^(k−1)/(k−1)! e^(−r(t − a)) from t = a on. Terms
that begin after the time asked for are dropped, which leaves finitely many of an M/G/1 wait.
"""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction

DIGITS = 80
ONE = {(Fraction(0), Fraction(0), 0): Decimal(1)}


def decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def term(coefficient, shift=0, rate=0, power=0):
    return {(Fraction(shift), Fraction(rate), power): decimal(Fraction(coefficient))}


def plus(*laws):
    found = defaultdict(Decimal)
    for law in laws:
        for key, coefficient in law.items():
            found[key] += coefficient
    return dict(found)


def times(one, other, end):
    found = defaultdict(Decimal)
    for (a, r, i), c in one.items():
        for (b, s, j), d in other.items():
            if a + b > end:
                continue
            for rate, power, share in fractions(r, i, s, j):
                found[a + b, rate, power] += c * d * share
    return dict(found)


def fractions(r, i, s, j):
    """1/((z + r)^i (z + s)^j) as a sum of simple fractions: rate, power, coefficient."""
    if i == 0 or j == 0 or r == s:
        yield (s if i == 0 else r), i + j, Decimal(1)
        return
    for (rate, top), (other, low) in (((r, i), (s, j)), ((s, j), (r, i))):
        apart = decimal(other - rate)
        for power in range(1, top + 1):
            sign = -1 if (top - power) % 2 else 1
            ways = math.comb(low + top - power - 1, top - power)
            yield rate, power, Decimal(sign * ways) / apart ** (top + low - power)


def exponential(mean, _end=None):
    return term(1 / mean, rate=1 / mean, power=1)


def erlang(count, mean, _end=None):
    rate = count / mean
    return term(rate**count, rate=rate, power=count)


def uniform(low, high):
    height = 1 / (high - low)
    return plus(term(height, shift=low, power=1), term(-height, shift=high, power=1))


def atom(at, share=1):
    return term(share, shift=at)


def scaled(law, share):
    return {key: decimal(Fraction(share)) * c for key, c in law.items()}


def fitted_wait(load, mean):
    return plus(atom(0, 1 - load), scaled(exponential(mean / load), load))


def constant_service_wait(load, service, end):
    """(1 − ρ) z/(z − a + a e^(−zD)), a = ρ/D, as a series in e^(−zD)."""
    a = load / service
    found, power = {}, ONE
    first = plus(ONE, term(a, rate=-a, power=1))
    step = term(-a, shift=service, rate=-a, power=1)
    while power:
        found = plus(found, times(power, first, end))
        power = times(power, step, end)
    return scaled(found, 1 - load)


def uniform_service_wait(load, width, end):
    """A geometric number of residual services, as many as can have ended by ``end``."""
    mean = width / 2
    piece = plus(
        term(1 / mean, power=1),
        term(-1 / (mean * width), power=2),
        term(1 / (mean * width), shift=width, power=2),
    )
    found, power, share, likely, count = {}, ONE, 1 - load, 1.0, 0
    while likely > 1e-16:
        found = plus(found, scaled(power, share))
        power, share, count = times(power, piece, end), share * load, count + 1
        likely *= float(end / mean) / count
    return found


def cdf(parts, t):
    """P[sum of the parts ≤ t]."""
    with localcontext() as context:
        context.prec = DIGITS
        law = term(1, power=1)
        for part in parts:
            law = times(law, part, t)
        total = Decimal(0)
        for (shift, rate, power), c in law.items():
            rest = decimal(t - shift)
            size = rest ** (power - 1) if power > 1 else Decimal(1)
            total += c * size / math.factorial(power - 1) * (-decimal(rate) * rest).exp()
        return float(total)
