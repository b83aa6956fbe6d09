"""What the error of theory depends on, for every subscriber: the regime of its paths.

Loads, how far streams are from Poisson and services from exponential, how many busy brokers follow
each other, and how much the on-time share would move if the waits that are approximate were longer.
The measured errors of theory are a function of these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidings.model.arrays import Floats, Ints
from tidings.model.loads import FULL_LOAD
from tidings.model.routes import Routes
from tidings.theory.delay.outward import Outward
from tidings.theory.delay.paths import BrokerStages
from tidings.theory.feature_names import ALONG, LARGEST
from tidings.theory.queues.flows import Flows

OVERLOADED_FOR_A_TIME = 1e3  # stands for the load of such a broker
MOST_LOAD = 2.0  # to which loads are cut: more is as bad
BUSY = 0.02  # load from which a broker counts as one that events wait at


@dataclass(frozen=True, kw_only=True)
class PathFeatures:
    """Features of paths, carried along them like delays."""

    routes: Routes
    rates: Flows
    loads_at_worst: Floats  # [broker]: if all who come and go were there, while something is down
    loads_if_all_there: Floats  # [broker]: if all who come and go were there
    brokers: BrokerStages

    @cached_property
    def at_broker(self) -> Floats:
        """[source, feature]: what events of a source meet at the broker they arrive at."""
        rates, stages = self.rates, self.brokers
        loads = np.minimum(rates.loads, 1.0)[rates.into]
        busy = loads > BUSY
        service = np.array(
            [np.log(max((law.scv for law in laws), default=1.0) + 0.1) for laws in rates.services]
        )[rates.into]
        own, others = np.log(stages.own + 0.1), np.log(stages.others + 0.1)
        arrivals = rates.arrivals[rates.into]
        share = np.divide(
            rates.source_rates, arrivals, out=np.zeros_like(arrivals), where=arrivals > 0.0
        )
        poisson = np.log(1.1)
        stations = self._busy_stations[rates.into]
        columns = [
            loads,
            self._loads_at_worst[rates.into],
            np.where(busy, np.maximum(own - poisson, 0.0), 0.0),
            np.where(busy, np.maximum(poisson - own, 0.0), 0.0),
            np.where(busy, np.maximum(others - poisson, 0.0), 0.0),
            np.where(busy, np.maximum(poisson - others, 0.0), 0.0),
            np.where(busy, np.maximum(service - poisson, 0.0), 0.0),
            np.where(busy, np.maximum(poisson - service, 0.0), 0.0),
            (self.loads_if_all_there - rates.loads > BUSY)[rates.into],
            stations,
            np.where(stages.exact, 0.0, stations),
            loads / np.maximum(1.0 - loads, 0.02),
            np.where(busy & ~stages.exact, share, 0.0),
        ]
        return np.column_stack(columns)

    @property
    def _loads_at_worst(self) -> Floats:
        """[broker]: far beyond what is measured where it is overloaded only for a time.

        Of such a broker mean rates say nothing.
        """
        load = np.minimum(self.loads_at_worst, MOST_LOAD)
        for_a_time = (load >= FULL_LOAD) & (self.rates.loads < FULL_LOAD)
        return np.where(for_a_time, OVERLOADED_FOR_A_TIME, load)

    @property
    def _busy_stations(self) -> Floats:
        """[broker]: how many of its stations events wait at."""
        rates = self.rates
        return np.array(
            [
                float(sum(rate * law.mean_s > BUSY for law in laws))
                for rate, laws in zip(rates.arrivals, rates.services, strict=True)
            ]
        )

    @cached_property
    def _outward(self) -> Outward[_Features]:
        first_arc = self.routes.home_of_publisher.size
        none = _Features(np.zeros((1, len(ALONG))))
        return Outward(self.routes, _Features(self.at_broker[first_arc:]), none, _stack)

    def of_paths(self, publishers: Ints, home: int, tree: int) -> Floats:
        """Compute the features of paths from publishers to a home broker.

        The array is [publisher, feature along paths].
        """
        starts = self.routes.home_of_publisher[publishers]
        tails = self._outward.to(home, tree).take(self._outward.rows_of(starts))
        return _Features(self.at_broker[publishers]).series(tails).values


@dataclass(frozen=True, slots=True)
class _Features:
    """Features of parts of paths, [part, feature]."""

    values: Floats

    def take(self, rows: Ints | Sequence[int]) -> _Features:
        return _Features(self.values[np.asarray(rows, dtype=np.int64)])

    def series(self, then: _Features) -> _Features:
        largest = len(LARGEST)
        one, other = self.values, then.values
        return _Features(
            np.concatenate(
                [
                    np.maximum(one[:, :largest], other[:, :largest]),
                    one[:, largest:] + other[:, largest:],
                ],
                axis=1,
            )
        )

    def overwritten(self, rows: Ints, part: _Features) -> _Features:
        self.values[rows] = part.values
        return self


def _stack(parts: Sequence[_Features]) -> _Features:
    return _Features(np.concatenate([part.values for part in parts]))
