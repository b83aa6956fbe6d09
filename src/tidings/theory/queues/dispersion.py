r"""How bursty every stream is, on every scale of time: its index of dispersion for counts.

I(t) = Var N(t)/E N(t) of the number N of arrivals in a time t: 1 for a Poisson stream, less for a
paced one, more for bursts. Streams are followed by where they come from:

- a publisher's curve is that of its renewal process;
- what a source hands to an arc is thinned like by a coin: p I + 1 − p;
- an arc carries the sum of its parts, curves weighted by rates;
- a busy server passes long scales on as they arrive and sets its own rhythm on short ones (Whitt
  and You): w(t) I(t) + (1 − w(t)) (q I_S(ρt) + 1 − q) for the share q of what leaves, I_S being the
  curve of its services in a row.

What counts at a server is the mean of I over the scales that its queue feels. To first order that
is E[I(Xτ)], X having the chi-squared distribution with one degree of freedom and
τ = ρ m (I + c²)/(1 − ρ)²: the derivative of Spitzer's integral for the mean of a Brownian queue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import special

from tidings.model.arrays import Floats
from tidings.model.laws import Deterministic, Exponential, Law, PhaseType, unshifted
from tidings.model.loads import FULL_LOAD
from tidings.theory.delay.grids import euler_rule
from tidings.theory.queues.flows import Flows
from tidings.theory.queues.renewal_streams import renewal_stream

_POINTS_PER_E = 3.0
_ROUNDS = 4  # of curves and queues in turn
# Equal parts of the chi-squared distribution with one degree of freedom, each by its middle.
_SCALES = special.chdtri(1.0, 1.0 - (np.arange(24) + 0.5) / 24)


def renewal_dispersion(law: Law, t_s: Floats) -> Floats:
    """Compute I(t) of the stationary renewal process with these intervals.

    >>> renewal_dispersion(Exponential(mean_s=1.0), np.array([0.1, 10.0])).round(6)
    array([1., 1.])
    """
    if isinstance(law, Exponential):
        return np.ones(t_s.shape)
    base, shift_s = unshifted(law)
    if isinstance(base, Deterministic):
        x = t_s / (base.value_s + shift_s)
        part = x - np.floor(x)
        return part * (1.0 - part) / x
    nodes, weights = euler_rule()
    rate = 1.0 / law.mean_s
    z = nodes / t_s[:, None]
    served = law.transform(z)
    # Var N = λ ∫ (1 + 2 m(u) − 2λu) du, m the renewal function with transform h/(z(1 − h)).
    variance = (rate / z**2 * (1.0 + 2.0 * served / (1.0 - served) - 2.0 * rate / z)).real
    dispersion: Floats = variance @ weights / t_s / (rate * t_s)
    return np.maximum(dispersion, 0.0)


@dataclass(frozen=True, kw_only=True)
class Dispersion:
    """Curves of all sources of a system, [source, time], and what each counts at its broker."""

    rates: Flows
    times_s: Floats
    curves: Floats

    def felt(self, broker: int, service: Law) -> tuple[Floats, float]:
        """Compute the mean dispersion of each source of a broker over the scales a station feels.

        Also the scale itself, in seconds.
        """
        sources = np.flatnonzero((self.rates.into == broker) & (self.rates.source_rates > 0.0))
        rates = self.rates.source_rates[sources]
        load = min(float(self.rates.arrivals[broker]) * service.mean_s, 0.999)
        total = 1.0
        for _ in range(6):
            scale_s = load * service.mean_s * max(total + service.scv, 0.05) / (1.0 - load) ** 2
            times = np.log(np.maximum(scale_s * _SCALES, self.times_s[0]))  # 0 if nothing is served
            curves = [np.interp(times, np.log(self.times_s), self.curves[each]) for each in sources]
            own = np.stack(curves).mean(axis=1)
            total = float(rates @ own / rates.sum())
        return own, scale_s


_SCVS = np.concatenate([np.linspace(0.125, 1.0, 15), np.geomspace(1.15, 60.0, 18)])
_INTERVALS = np.geomspace(1e-4, 1e4, 41)  # scales in mean intervals


@cache
def _felt_by_scv() -> Floats:
    """Compute the mean dispersion over scales of renewal streams with unit rate, [scale, c²]."""
    table = np.empty((_INTERVALS.size, _SCVS.size))
    times = np.outer(_INTERVALS, _SCALES)
    for index, scv in enumerate(_SCVS):
        stream = renewal_stream(1.0, float(scv))
        law = PhaseType(
            initial=tuple(stream.arriving[-1] / stream.arriving[-1].sum()),
            generator=tuple(map(tuple, stream.silent.tolist())),
        )
        table[:, index] = renewal_dispersion(law, times.ravel()).reshape(times.shape).mean(axis=1)
    return np.maximum.accumulate(table, axis=1)


def renewal_scv(felt: float, intervals: float) -> float:
    """Compute c² of the renewal stream whose mean dispersion over scales is ``felt``.

    The scale is given in mean intervals of the stream. On scales far below an interval every
    stream looks like a Poisson one, so that the deviation from 1 and not its size counts.

    >>> renewal_scv(1.0, 5.0)  # Poisson, whatever the scale; the table takes a second to make
    1.0
    """
    if felt == 1.0:
        return 1.0
    row = np.log(np.clip(intervals, _INTERVALS[0], _INTERVALS[-1]) / _INTERVALS[0])
    row /= math.log(_INTERVALS[1] / _INTERVALS[0])
    at = min(int(row), _INTERVALS.size - 2)
    table = _felt_by_scv()
    values = table[at] * (at + 1 - row) + table[at + 1] * (row - at)
    return float(np.interp(felt, values, _SCVS))


def departure_weight(x: Floats) -> Floats:
    """Compute how far departures are arrivals rather than services, Whitt and You's w*.

    x = (1 − ρ)² λ t/(ρ (I + c²)); 0 for short times, 1 for long ones.
    """
    s = np.clip(x, 1e-4, 60.0)
    root = np.sqrt(s)
    density = np.exp(-0.5 * s) / math.sqrt(2.0 * math.pi)
    inside = (s * s + 2.0 * s - 1.0) * special.erf(root / math.sqrt(2.0))
    weight = (inside + 2.0 * root * density * (1.0 + s) - s * s) / (2.0 * s)
    small = (8.0 / 3.0) * np.sqrt(np.maximum(x, 0.0) / (2.0 * math.pi)) - 0.5 * x
    weight = np.where(x < 1e-4, small, weight)
    weight = np.where(x > 60.0, 1.0 - 0.5 / np.maximum(x, 60.0), weight)
    return np.clip(weight, 0.0, 1.0)


def dispersion(rates: Flows, emitted: list[Law | None]) -> Dispersion:
    """Follow dispersion curves through a system.

    ``emitted`` are the intervals of what each publisher hands to its link; None: Poisson.
    """
    return _Followed(rates=rates, emitted=emitted).settled()


@dataclass(frozen=True, kw_only=True)
class _Followed:
    rates: Flows
    emitted: list[Law | None]

    @cached_property
    def times_s(self) -> Floats:
        """From below the shortest service to beyond the slowest queue."""
        services = [law for laws in self.rates.services for law in laws if law.mean_s > 0.0]
        intervals = [law.mean_s for law in self.emitted if law is not None]
        least_s = 0.05 * min([law.mean_s for law in services] + intervals, default=1.0)
        most_s = max([law.mean_s for law in services] + intervals, default=1.0)
        for load, laws in zip(self.rates.loads, self.rates.services, strict=True):
            for law in laws:
                spare = max(1.0 - load, 0.02)
                most_s = max(most_s, 20.0 * law.mean_s * (2.0 + law.scv) / spare**2)
        count = int(_POINTS_PER_E * math.log(most_s / least_s)) + 2
        return np.geomspace(least_s, most_s, count)

    def settled(self) -> Dispersion:
        """Compute curves of publishers once, of arcs over and over until queues stand still."""
        curves = np.ones((self.rates.into.size, self.times_s.size))
        known: dict[Law, Floats] = {}
        for index, law in enumerate(self.emitted):
            if law is None:
                continue
            if law not in known:
                known[law] = renewal_dispersion(law, self.times_s)
            published = float(self.rates.source_rates[index])
            kept = min(published * law.mean_s, 1.0)  # thinned by its link
            curves[index] = kept * known[law] + 1.0 - kept
        if np.all(curves == 1.0) and self._poisson_services:
            return Dispersion(rates=self.rates, times_s=self.times_s, curves=curves)
        for _ in range(_ROUNDS):
            self._carry(curves)
        return Dispersion(rates=self.rates, times_s=self.times_s, curves=curves)

    @cached_property
    def _poisson_services(self) -> bool:
        return all(isinstance(law, Exponential) for laws in self.rates.services for law in laws)

    def _carry(self, curves: Floats) -> None:
        """Make one pass over all arcs: compute their curves from those of what feeds them."""
        rates, first_arc = self.rates, len(self.rates.entering)
        handed = rates.handed.tocoo()
        arc, source = handed.coords
        total = rates.source_rates[first_arc:]
        share = handed.data / total[arc]
        kept = handed.data / rates.source_rates[source]
        beyond = np.zeros((total.size, self.times_s.size))
        np.add.at(beyond, arc, (share * kept)[:, None] * (curves[source] - 1.0))
        arriving = 1.0 + beyond
        for index, each in enumerate(rates.routes.arcs):
            if total[index] > 0.0:
                part = total[index] / (rates.arrivals[each.source] * rates.passes[each.source])
                curves[first_arc + index] = self._through(
                    each.source, arriving[index], part, curves
                )

    def _through(self, broker: int, curve: Floats, part: float, curves: Floats) -> Floats:
        """Compute the curve of a part of what leaves a broker, from that with which it arrived."""
        rate = float(self.rates.arrivals[broker])
        sources = np.flatnonzero(self.rates.into == broker)
        at_large = float(self.rates.source_rates[sources] @ curves[sources, -1]) / rate
        for law in self.rates.services[broker]:
            load = rate * law.mean_s
            if load <= 0.0:
                continue
            serving = part * self._serving(law, min(load, 1.0)) + 1.0 - part
            if load >= FULL_LOAD:
                curve = serving
                continue
            uneven = max(at_large + law.scv, 1e-3)
            weight = departure_weight((1.0 - load) ** 2 * rate * self.times_s / (load * uneven))
            curve = weight * curve + (1.0 - weight) * serving
        return curve

    @cached_property
    def _known_servings(self) -> dict[tuple[Law, float], Floats]:
        return {}

    def _serving(self, law: Law, load: float) -> Floats:
        """Compute the curve of services in a row, on the time that the server is busy."""
        key = (law, round(load, 6))
        if key not in self._known_servings:
            self._known_servings[key] = renewal_dispersion(law, load * self.times_s)
        return self._known_servings[key]
