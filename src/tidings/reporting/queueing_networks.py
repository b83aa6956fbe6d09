"""A system as a queueing network that other tools read: JMT, and LINE, which reads JMT's files.

A broker is a queue, a link a station without waiting behind which a share is lost, a publisher's
events of one class a class of jobs that visit the brokers on their path. A job does not become
two, so an event that several brokers send on to different sides is refused, as is whatever else the
format has no word for. Lifetimes have no place in it: what is to be compared is waits and delays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.behaviour import PERFECT, Channel
from tidings.model.features import require_only
from tidings.model.laws import Deterministic, Exponential, Gamma, Law, LogNormal, Uniform
from tidings.model.record_tables import column, names
from tidings.model.routes import Routes, route
from tidings.model.system import Broker, Publisher, System
from tidings.model.writing import check_file, write_file

# A job that forks must join again, and copies that are classes of their own would not arrive as
# events leave a broker, but at random: waits behind it would be others.
_ONE_SIDE = "; keep the subscribers on one side (remove the others), and export once for each side"
_HANDLED = (
    "several servers",
    "random lifetimes",
    "lifetimes of subscribers",
    "subscribers with a count",
    "one tree per topic",
)
_WHO = "a file of JMT"
_STRATEGIES = "jmt.engine.NetStrategies"
_SCHEMA = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"
_MEASURES = ("Number of Customers", "Utilization", "Response Time", "Throughput")
Turns = dict[str, dict[str, float]]  # of a class: from where to where with which probability


@dataclass(frozen=True, slots=True, kw_only=True)
class _Jobs:
    """A class of jobs: what arrives how often, and where it goes."""

    name: str
    every: Law
    turns: Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A station: its law, and how many servers it has; None for as many as there are jobs."""

    law: Law
    servers: int | None


def export(system: System, to: str | Path) -> Path:
    """Write a system as a queueing network (.jsimg), as JMT and LINE read it; gives the path."""
    path = Path(to)
    if path.suffix != ".jsimg":
        raise InvalidInputError(f"'{path}' is no .jsimg file")
    check_file(path)
    write_file(path, jsimg(system, path.stem).encode())
    return path


def jsimg(system: System, name: str = "tidings") -> str:
    """Write a system as a model file of JMT's simulator (.jsimg), times in seconds."""
    require_only(system, _HANDLED, _WHO)
    if column(system.subscribers, "link").where(lambda link: link != PERFECT).size:
        _refuse("links of subscribers", [f"subscribers.{each}" for each in _linked(system)])
    ends = _ends(system)
    stations = {broker.name: _station(broker) for broker in system.brokers}
    jobs = list(_streams(system, route(system), stations, ends))
    ElementTree.register_namespace("xsi", _SCHEMA[1:].partition("}")[0])
    settings = {
        "name": name, "disableStatisticStop": "false", "logDecimalSeparator": ".",
        "logDelimiter": ",", "logPath": "", "logReplaceMode": "0", "maxSamples": "1000000",
        "polling": "1.0",
        _SCHEMA: "SIMmodeldefinition.xsd",
    }  # fmt: skip
    root = Element("sim", settings)
    for each in jobs:
        attributes = {"name": each.name, "priority": "0", "softDeadline": "0.0", "type": "open"}
        SubElement(root, "userClass", {**attributes, "referenceSource": ends.source})
    _write_source(root, ends.source, jobs)
    for at, place in stations.items():
        _write_station(root, at, place, jobs)
    sink = SubElement(root, "node", {"name": ends.sink})
    SubElement(sink, "section", {"className": "JobSink"})
    _write_measures(root, stations, jobs)
    pairs = dict.fromkeys(
        (at, to) for each in jobs for at, turns in each.turns.items() for to in turns
    )
    for source, target in pairs:
        SubElement(root, "connection", {"source": source, "target": target})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    """Where jobs come from and go to, by names that no broker has."""

    source: str
    sink: str


def _ends(system: System) -> _Ends:
    taken = {broker.name for broker in system.brokers}
    free = []
    for name in ("source", "sink"):
        while name in taken:
            name += "_"
        free.append(name)
    return _Ends(source=free[0], sink=free[1])


def _linked(system: System) -> list[str]:
    named = names(system.subscribers)
    return [
        named[index]
        for index in column(system.subscribers, "link").where(lambda link: link != PERFECT)
    ]


def _station(broker: Broker) -> _Place:
    service = broker.stations[0].service
    assert service is not None  # 'demands' are refused
    law = service.with_stored(0)
    if service.with_stored(1) != law:
        _refuse("service that grows with subscriptions", [f"brokers.{broker.name}.service"])
    _law_words(law, f"brokers.{broker.name}.service")
    return _Place(law=law, servers=broker.stations[0].servers)


def _streams(
    system: System, routes: Routes, stations: dict[str, _Place], ends: _Ends
) -> Iterator[_Jobs]:
    """Yield every publisher's events by class, each with its path; add links to the stations."""
    rates = routes.rates(np.array([each.rate_per_s for each in system.publishers]))
    for index, publisher in enumerate(system.publishers):
        classes = np.flatnonzero(rates[index] > 0.0)
        for number, content_class in enumerate(classes, start=1):
            walk = _Walk(system=system, routes=routes, stations=stations, ends=ends)
            turns = walk.turns(index, int(content_class))
            name = publisher.name if len(classes) == 1 else f"{publisher.name} {number}"
            every = _interval(publisher, float(rates[index, content_class]), len(classes))
            yield _Jobs(name=name, every=every, turns=turns)


def _interval(publisher: Publisher, rate_per_s: float, classes: int) -> Law:
    """Give the time between two events of a class.

    A Poisson stream splits into Poisson streams by class.
    """
    if isinstance(publisher.every, Exponential):
        return Exponential(mean_s=1.0 / rate_per_s)
    assert publisher.every is not None  # all else is refused
    if classes > 1:
        where = [f"publishers.{publisher.name}"]
        _refuse("several event classes from a publisher that is not Poisson", where)
    _law_words(publisher.every, f"publishers.{publisher.name}.every")
    return publisher.every


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """Where the events of one class go."""

    system: System
    routes: Routes
    stations: dict[str, _Place]
    ends: _Ends

    def turns(self, publisher: int, content_class: int) -> Turns:
        """Map from where to where the events go, with which probability.

        Links that take time are stations among them.
        """
        brokers = self.system.brokers
        turns: Turns = {}
        before, here = -1, int(self.routes.home_of_publisher[publisher])
        one = self.system.publishers[publisher]
        self._cross(turns, self.ends.source, brokers[here].name, one.link, f"{one.name}'s link")
        while True:
            arcs = [self.routes.arcs[each] for each in self._onward(here, before, content_class)]
            if not arcs:
                turns[brokers[here].name] = {self.ends.sink: 1.0}
                return turns
            if len(arcs) > 1:
                targets = " and ".join(sorted(brokers[arc.target].name for arc in arcs))
                where = f"events of '{one.name}' at '{brokers[here].name}' (to {targets})"
                _refuse("events that go on to several brokers", [where], _ONE_SIDE)
            before, here, channel = here, arcs[0].target, arcs[0].channel
            source, target = brokers[before].name, brokers[here].name
            self._cross(turns, source, target, channel, f"{source} to {target}")

    def _onward(self, here: int, before: int, content_class: int) -> list[int]:
        tree = self.routes.trees[int(self.routes.tree_of_class[content_class])]
        return [
            arc
            for arc in tree.outgoing[here]
            if self.routes.arcs[arc].target != before
            and self.routes.interest[arc, content_class] > 0
        ]

    def _cross(self, turns: Turns, source: str, target: str, channel: Channel, name: str) -> None:
        """Go over a link: some events are lost, the others take their time."""
        first = target
        if channel.delay != Deterministic(value_s=0.0):
            _law_words(channel.delay, name)
            self.stations.setdefault(name, _Place(law=channel.delay, servers=None))
            turns[name] = {target: 1.0}
            first = name
        lost = {self.ends.sink: 1.0 - channel.reliability} if channel.reliability < 1.0 else {}
        turns[source] = {first: channel.reliability, **lost}


def _refuse(what: str, where: Sequence[str], do: str = "") -> None:
    listed = ", ".join(where[:4])
    raise UnsupportedError(f"{_WHO} cannot say: {what}: {listed}{do}", [what])


def _law_words(law: Law, where: str) -> tuple[str, str, dict[str, float]]:
    """Name a distribution as JMT does: its class, its name, its parameters."""
    if isinstance(law, Exponential):
        return "Exponential", "Exponential", {"lambda": 1.0 / law.mean_s}
    if isinstance(law, Deterministic):
        return "DeterministicDistr", "Deterministic", {"t": law.value_s}
    if isinstance(law, Uniform):
        return "Uniform", "Uniform", {"min": law.low_s, "max": law.high_s}
    if isinstance(law, Gamma):
        return "GammaDistr", "Gamma", {"alpha": law.shape, "beta": law.mean_s / law.shape}
    if isinstance(law, LogNormal):
        return "Lognormal", "Lognormal", {"mu": law.mu, "sigma": law.sigma}
    _refuse(f"the distribution {type(law).__name__}", [where])
    raise AssertionError


def _write_source(root: Element, name: str, jobs: Sequence[_Jobs]) -> None:
    node = SubElement(root, "node", {"name": name})
    section = SubElement(node, "section", {"className": "RandomSource"})
    _write_laws(section, {each.name: each.every for each in jobs})
    SubElement(node, "section", {"className": "ServiceTunnel"})
    _write_routing(node, name, jobs)


def _write_station(root: Element, name: str, place: _Place, jobs: Sequence[_Jobs]) -> None:
    node = SubElement(root, "node", {"name": name})
    queue = SubElement(node, "section", {"className": "Queue"})
    _write_value(queue, "parameter", "java.lang.Integer", "size", "-1")
    drops = _array(queue, "java.lang.String", "dropStrategies")
    for each in jobs:
        SubElement(drops, "refClass").text = each.name
        _write_value(drops, "subParameter", "java.lang.String", "dropStrategy", "drop")
    path = f"{_STRATEGIES}.QueueGetStrategies.FCFSstrategy"
    SubElement(queue, "parameter", {"classPath": path, "name": "FCFSstrategy"})
    puts = _array(queue, f"{_STRATEGIES}.QueuePutStrategy", "QueuePutStrategy")
    for each in jobs:
        SubElement(puts, "refClass").text = each.name
        path = f"{_STRATEGIES}.QueuePutStrategies.TailStrategy"
        SubElement(puts, "subParameter", {"classPath": path, "name": "TailStrategy"})
    kind = "Delay" if place.servers is None else "Server"
    section = SubElement(node, "section", {"className": kind})
    if place.servers is not None:
        whole = "java.lang.Integer"
        _write_value(section, "parameter", whole, "maxJobs", str(place.servers))
        visits = _array(section, whole, "numberOfVisits")
        for each in jobs:
            SubElement(visits, "refClass").text = each.name
            _write_value(visits, "subParameter", whole, "numberOfVisits", "1")
    _write_laws(section, {each.name: place.law for each in jobs})
    _write_routing(node, name, jobs)


def _write_laws(section: Element, law_of: dict[str, Law]) -> None:
    laws = _array(section, f"{_STRATEGIES}.ServiceStrategy", "ServiceStrategy")
    for name, law in law_of.items():
        SubElement(laws, "refClass").text = name
        path = f"{_STRATEGIES}.ServiceStrategies.ServiceTimeStrategy"
        timing = SubElement(
            laws, "subParameter", {"classPath": path, "name": "ServiceTimeStrategy"}
        )
        kind, called, parameters = _law_words(law, name)
        SubElement(
            timing, "subParameter", {"classPath": f"jmt.engine.random.{kind}", "name": called}
        )
        path = f"jmt.engine.random.{kind}Par"
        holder = SubElement(timing, "subParameter", {"classPath": path, "name": "distrPar"})
        for parameter, value in parameters.items():
            _write_value(holder, "subParameter", "java.lang.Double", parameter, _number(value))


def _write_routing(node: Element, name: str, jobs: Sequence[_Jobs]) -> None:
    section = SubElement(node, "section", {"className": "Router"})
    routing = _array(section, f"{_STRATEGIES}.RoutingStrategy", "RoutingStrategy")
    for each in jobs:
        SubElement(routing, "refClass").text = each.name
        turns = each.turns.get(name)
        called, kind = ("Random", "Random") if turns is None else ("Probabilities", "Empirical")
        path = f"{_STRATEGIES}.RoutingStrategies.{kind}Strategy"
        strategy = SubElement(routing, "subParameter", {"classPath": path, "name": called})
        if turns is None:  # never here
            continue
        entry = {"classPath": "jmt.engine.random.EmpiricalEntry"}
        entries = SubElement(
            strategy, "subParameter", {**entry, "array": "true", "name": "EmpiricalEntryArray"}
        )
        for target, probability in turns.items():
            row = SubElement(entries, "subParameter", {**entry, "name": "EmpiricalEntry"})
            _write_value(row, "subParameter", "java.lang.String", "stationName", target)
            text = _number(probability)
            _write_value(row, "subParameter", "java.lang.Double", "probability", text)


def _write_measures(root: Element, stations: dict[str, _Place], jobs: Sequence[_Jobs]) -> None:
    for at in stations:
        for each in (each for each in jobs if at in each.turns):
            for measure in _MEASURES:
                attributes = {
                    "name": f"{at} {each.name} {measure}", "type": measure, "nodeType": "station",
                    "referenceNode": at, "referenceUserClass": each.name, "alpha": "0.01",
                    "precision": "0.03", "verbose": "false",
                }  # fmt: skip
                SubElement(root, "measure", attributes)


def _array(parent: Element, path: str, name: str) -> Element:
    return SubElement(parent, "parameter", {"array": "true", "classPath": path, "name": name})


def _write_value(parent: Element, tag: str, path: str, name: str, text: str) -> None:
    holder = SubElement(parent, tag, {"classPath": path, "name": name})
    SubElement(holder, "value").text = text


def _number(value: float) -> str:
    assert math.isfinite(value)
    return repr(value)
