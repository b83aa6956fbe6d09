"""How the parts of a system behave: service, failure, connectivity, channels, daily rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.model import records
from tidings.model.document import Place
from tidings.model.laws import Deterministic, Exponential, Law, law_document, law_schema, read_law
from tidings.model.records import Kind, spec


def read_positive_law(place: Place) -> Law | None:
    """A law of times that are not all zero."""
    law = read_law(place)
    if law is not None and law.mean_s <= 0:
        place.report("a law with a mean above 0")
    return law


LAW = Kind(label="a law of times", read=read_law, write=law_document, schema=law_schema)

POSITIVE_LAW = Kind(
    label="a law of times", read=read_positive_law, write=law_document, schema=law_schema
)

DISCIPLINES = ("fcfs", "processor-sharing", "infinite-server", "priority")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How long a broker works on one copy of an event.

    With ``per_subscription`` the law is that of one stored subscription, and the time is the law
    scaled by the number stored (the family keeps its shape, its mean grows).
    """

    law: Law
    per_subscription: bool = False

    def with_stored(self, subscriptions: int) -> Law:
        """The law of the service time of a broker that stores so many subscriptions."""
        if not self.per_subscription:
            return self.law
        return (
            self.law.scaled(float(subscriptions)) if subscriptions else Deterministic(value_s=0.0)
        )


def _read_service(place: Place) -> Service | None:
    value = place.value
    per_subscription = isinstance(value, dict) and "per" in value
    if per_subscription:
        place.child("per", value["per"]).choice(["subscription"])
        place = place.instead({key: each for key, each in value.items() if key != "per"})
    law = read_law(place)
    return None if law is None else Service(law=law, per_subscription=per_subscription)


def _service_document(service: Service) -> Any:
    document = law_document(service.law)
    if not service.per_subscription:
        return document
    if not isinstance(document, dict):
        document = {"deterministic": document}
    return {**document, "per": "subscription"}


def _service_schema() -> dict[str, Any]:
    # "per" may stand beside any law; the reader says precisely what is wrong where it is.
    per = {"type": "object", "required": ["per"], "properties": {"per": {"const": "subscription"}}}
    return {"anyOf": [law_schema(), per]}


SERVICE = Kind(
    label="a law of times, perhaps with per: subscription",
    read=_read_service,
    write=_service_document,
    schema=_service_schema,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A component that works for a time ``up`` and is then being repaired for a time ``down``."""

    up: Law
    down: Law

    @property
    def availability(self) -> float:
        """The long-run share of time in which the component works."""
        return self.up.mean_s / (self.up.mean_s + self.down.mean_s)


_FAILURE_FORMS = "{mtbf, mttr}, {availability, period}, or the laws {up, down}"


def _read_failure(place: Place) -> Failure | None:
    before = len(place.problems)
    parts = place.mapping(tuple(key for form in _FAILURE_READERS for key in form), _FAILURE_FORMS)
    reader = _FAILURE_READERS.get(tuple(parts)) or _FAILURE_READERS.get(tuple(parts)[::-1])
    if reader is None:
        if len(place.problems) == before:
            place.report(_FAILURE_FORMS)
        return None
    up, down = reader(parts)
    if up is None or down is None or len(place.problems) > before:
        return None
    return Failure(up=up, down=down)


def _read_mean_times(parts: Mapping[str, Place]) -> tuple[Law | None, Law | None]:
    up, down = (parts[key].seconds(positive=True) for key in ("mtbf", "mttr"))
    if up is None or down is None:
        return None, None
    return Exponential(mean_s=up), Exponential(mean_s=down)


def _read_availability(parts: Mapping[str, Place]) -> tuple[Law | None, Law | None]:
    share = parts["availability"].share(positive=True)
    period = parts["period"].seconds(positive=True)
    if share == 1.0:
        parts["availability"].report("a share below 1", fix="leave 'failure' out altogether")
    if share is None or period is None or share == 1.0:
        return None, None
    return Exponential(mean_s=share * period), Exponential(mean_s=(1 - share) * period)


def _read_up_and_down(parts: Mapping[str, Place]) -> tuple[Law | None, Law | None]:
    return read_positive_law(parts["up"]), read_positive_law(parts["down"])


_FAILURE_READERS: dict[tuple[str, ...], Callable[..., tuple[Law | None, Law | None]]] = {
    ("mtbf", "mttr"): _read_mean_times,
    ("availability", "period"): _read_availability,
    ("up", "down"): _read_up_and_down,
}


def _failure_document(failure: Failure) -> dict[str, Any]:
    if isinstance(failure.up, Exponential) and isinstance(failure.down, Exponential):
        return {"mtbf": failure.up.mean_s, "mttr": failure.down.mean_s}
    return {"up": law_document(failure.up), "down": law_document(failure.down)}


def _failure_schema() -> dict[str, Any]:
    def form(**kinds: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": kinds,
            "required": list(kinds),
        }

    time = records.POSITIVE_TIME.schema()
    return {
        "anyOf": [
            form(mtbf=time, mttr=time),
            form(availability={"type": "number", "exclusiveMinimum": 0, "maximum": 1}, period=time),
            form(up=law_schema(), down=law_schema()),
        ]
    }


FAILURE = Kind(
    label=_FAILURE_FORMS, read=_read_failure, write=_failure_document, schema=_failure_schema
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What carries events from one end to another: how fast, how surely."""

    delay: Law = spec(LAW, "time an event needs to cross", default=Deterministic(value_s=0.0))
    reliability: float = spec(records.SHARE, "share of events that are not lost", default=1.0)
    loss_burst: float = spec(
        records.number_from(1.0), "mean number of events lost in a row", default=1.0
    )
    bandwidth_bytes_per_s: float | None = spec(
        records.BANDWIDTH,
        "of the connection; the size of messages matters then",
        default=None,
        key="bandwidth",
    )
    network: str | None = spec(
        records.TEXT, "name of the physical network it shares with others", default=None
    )
    failure: Failure | None = spec(FAILURE, "how it fails and is repaired", default=None)


PERFECT = Channel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectivity:
    """A peer that is connected for a time ON and away for a time OFF; events wait meanwhile."""

    on: Law | None = spec(POSITIVE_LAW, "time connected", default=None)
    off: Law | None = spec(POSITIVE_LAW, "time away", default=None)
    trace: str | None = spec(
        records.TEXT,
        "file of connectivity tuples to draw the periods from, instead of laws",
        default=None,
    )
    replay: str = spec(
        records.choice("resample", "loop"),
        "how periods are drawn from the trace",
        default="resample",
    )
    service: Law | None = spec(LAW, "time to hand one event over while connected", default=None)
    buffer: int | None = spec(
        records.whole(0), "events that may wait for the peer; no limit if left out", default=None
    )


def _read_connectivity(place: Place) -> Connectivity | None:
    found: Connectivity | None = records.read_record(Connectivity, place)
    if found is not None:
        laws = found.on is not None and found.off is not None
        if laws == (found.trace is not None) or (found.on is None) != (found.off is None):
            place.report("both laws on and off, or a trace (not both)")
    return found


CONNECTIVITY = Kind(
    label="connectivity",
    read=_read_connectivity,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/Connectivity"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyRates:
    """Publication rates by time of day: Poisson, with a constant rate inside each slot."""

    slot_s: float = spec(records.POSITIVE_TIME, "length of one slot", key="slot")
    per_s: tuple[float, ...] = spec(
        records.listing(records.RATE, least=1), "rate in each slot, from the start of the day"
    )
    repeat: bool = spec(records.FLAG, "begin again after the last slot", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A queue inside a broker: a CPU, a disk, an output."""

    service: Service | None = spec(SERVICE, "time for one event of any type", default=None)
    demands: tuple[tuple[str, Law], ...] = spec(
        records.by_name(LAW), "time for one event, by event type", default=()
    )
    servers: int = spec(records.whole(1), "how many work in parallel", default=1)
    buffer: int | None = spec(
        records.whole(0), "events that may wait; no limit if left out", default=None
    )
    discipline: str = spec(records.choice(*DISCIPLINES), "order of service", default="fcfs")


def _read_station(place: Place) -> Station | None:
    found: Station | None = records.read_record(Station, place)
    if found is not None and (found.service is None) == (not found.demands):
        place.report("either 'service' or 'demands' by event type")
    return found


STATION = Kind(
    label="a station",
    read=_read_station,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/Station"},
)
