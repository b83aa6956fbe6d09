"""The paper's end-to-end scenarios as systems, with the figures it gives for them.

A path of queueing centres is a system: the publisher's centre, brokers in a row, the subscriber's
centre at its home broker, the subscriber's own queue.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from studies.harness import Texts
from tidings.model.behaviour import Connectivity, Service, Station
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Exponential
from tidings.model.system import Broker, Link, Publisher, Subscriber, System

SERVICE_S = 0.0625
CENTRE_COUNTS = (4, 6)  # M/M/1 queues on the path: of the authors' own runs, and of their text
MINUTE_S = 60.0
TEXTS = Texts("mobile-onoff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One row of the paper's Table 3; times in seconds, (ON, OFF) of each peer."""

    name: str
    publisher: tuple[float, float]  # OFF 0: always connected, a plain queue
    subscriber: tuple[float, float]
    rate_per_s: float
    paper_simulated_s: float
    paper_analytic_s: float
    note: str = ""
    stated: bool = True  # whether the rate is the one the paper states


TABLE_3 = tuple(
    Scenario(
        **{**row, "publisher": tuple(row["publisher"]), "subscriber": tuple(row["subscriber"])}
    )
    for row in TEXTS.all["table 3"]
)


def scenario_system(scenario: Scenario, plain_centres: int) -> System:
    """The system of a scenario: so many plain queues between and behind the two peers."""
    service = Exponential(mean_s=SERVICE_S)
    names = [f"b{number}" for number in range(plain_centres - 1)]
    station = Station(service=Service(law=service))
    brokers: list[Broker] = []
    if scenario.publisher[1] == 0.0:  # a publisher that is always connected is a plain queue too
        brokers.append(Broker(name="sending", service=Service(law=service)))
    half = len(names) // 2  # brokers with an input and an output queue, and one with an input only
    brokers += [
        Broker(name=f"b{number}", service=Service(law=service), out=station)
        for number in range(half)
    ]
    brokers += [Broker(name="home", service=Service(law=service))] if len(names) % 2 else []
    ends = [(one.name, other.name) for one, other in itertools.pairwise(brokers)]
    return System(
        version=1,
        brokers=tuple(brokers),
        links=tuple(Link(between=pair) for pair in ends),
        publishers=(
            Publisher(
                name="p4",
                at=brokers[0].name,
                every=Exponential(mean_s=1.0 / scenario.rate_per_s),
                content=ContentTable(
                    table=(ContentRow(probability=1.0, event={"topic": "travel"}),)
                ),
                connectivity=_connectivity(scenario.publisher),
            ),
        ),
        subscribers=(
            Subscriber(
                name="s1",
                at=brokers[-1].name,
                wants=as_filter({"topic": "travel"}),
                connectivity=_connectivity(scenario.subscriber),
                processing=service,
            ),
        ),
    )


def _connectivity(periods_s: tuple[float, float]) -> Connectivity | None:
    on_s, off_s = periods_s
    if off_s == 0.0:
        return None
    return Connectivity(
        on=Exponential(mean_s=on_s),
        off=Exponential(mean_s=off_s),
        service=Exponential(mean_s=SERVICE_S),
    )
