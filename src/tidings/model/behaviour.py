"""How the parts of a system behave: service, failure, connectivity, channels, daily rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidings.errors import Problem
from tidings.model import records
from tidings.model.daily_delays import DAILY_DELAYS, DailyDelays
from tidings.model.document import Place
from tidings.model.laws import Deterministic, Exponential, Law, law_document, read_law
from tidings.model.named_files import read_named
from tidings.model.records import Kind, given, spec


def read_positive_law(place: Place) -> Law | None:
    """Read a distribution of times, in seconds; report one whose mean is not above 0."""
    law = read_law(place)
    if law is not None and law.mean_s <= 0:
        place.report("a distribution with a mean above 0")
    return law


def _law_schema() -> dict[str, Any]:
    return {"$ref": "#/$defs/Law"}


LAW = Kind(label="a distribution of times", read=read_law, write=law_document, schema=_law_schema)

POSITIVE_LAW = Kind(
    label="a distribution of times", read=read_positive_law, write=law_document, schema=_law_schema
)

MOST_SERVERS = 10**5  # a simulation keeps a clock for each; more at once is "infinite-server"
DISCIPLINES = ("fcfs", "processor-sharing", "infinite-server", "priority")
PRIORITIES = records.by_name(records.whole(0))
PRIORITIES_MEAN = (
    "by event type, under the discipline 'priority': higher ones are served first, without "
    "interrupting others; 0 if not named"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How long a broker works on one copy of an event.

    With ``per_subscription`` the law is that of one stored subscription, and the time is the law
    scaled by the number stored (the family keeps its shape, its mean grows).
    """

    law: Law
    per_subscription: bool = False

    def with_stored(self, subscriptions: int) -> Law:
        """Give the service-time distribution of a broker that stores so many subscriptions."""
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
    return {"anyOf": [_law_schema(), per]}


SERVICE = Kind(
    label="a distribution of times, optionally with 'per: subscription'",
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


_FAILURE_FORMS = "{mtbf, mttr}, {availability, period}, or the distributions {up, down}"


def _read_failure(place: Place) -> Failure | None:
    before = len(place.problems)
    parts = place.mapping(tuple(_FAILURE_FIELDS), _FAILURE_FORMS)
    misspelt = len(place.problems) > before  # then no form need be incomplete
    values = {name: _FAILURE_FIELDS[name](part) for name, part in parts.items()}
    if isinstance(place.value, Mapping) and set(values) not in _FAILURE_SETS and not misspelt:
        place.report(_FAILURE_FORMS)
    if len(place.problems) > before:
        return None
    if "up" in values:
        return Failure(up=values["up"], down=values["down"])
    if "mtbf" in values:
        up_s, down_s = values["mtbf"], values["mttr"]
    else:
        share, period_s = values["availability"], values["period"]
        up_s, down_s = share * period_s, (1 - share) * period_s
    if up_s == 0.0 or down_s == 0.0:  # tiny numbers multiplied
        place.report("times above 0", saw=f"{up_s:g} s up and {down_s:g} s down")
        return None
    return Failure(up=Exponential(mean_s=up_s), down=Exponential(mean_s=down_s))


def _read_availability(place: Place) -> float | None:
    share = place.share(positive=True)
    if share == 1.0:
        place.report("a share below 1", fix="for a part that never fails, leave 'failure' out")
    return share


def _read_positive_time(place: Place) -> float | None:
    return place.seconds(positive=True)


_FAILURE_FIELDS: dict[str, Callable[[Place], Any]] = {
    "mtbf": _read_positive_time,
    "mttr": _read_positive_time,
    "availability": _read_availability,
    "period": _read_positive_time,
    "up": read_positive_law,
    "down": read_positive_law,
}
_FAILURE_SETS = ({"mtbf", "mttr"}, {"availability", "period"}, {"up", "down"})


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
            form(up=_law_schema(), down=_law_schema()),
        ]
    }


FAILURE = Kind(
    label=_FAILURE_FORMS, read=_read_failure, write=_failure_document, schema=_failure_schema
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What carries events from one end to another: how fast, how surely."""

    delay: Law = spec(LAW, "time an event needs to cross", default=Deterministic(value_s=0.0))
    delay_by_time: DailyDelays | None = spec(
        DAILY_DELAYS, "if its delays follow the time of day: by how much", default=None
    )
    reliability: float = spec(records.SHARE, "share of events that are not lost", default=1.0)
    loss_burst: float = spec(
        records.number_from(1.0), "mean number of events lost in a row", default=1.0
    )
    bandwidth_bytes_per_s: float | None = spec(
        records.BANDWIDTH,
        "of the connection; needs message sizes",
        default=None,
        key="bandwidth",
    )
    network: str | None = spec(
        records.TEXT, "name of the physical network it shares with others", default=None
    )
    failure: Failure | None = spec(FAILURE, "how it fails and is repaired", default=None)

    @property
    def decided_anew(self) -> float:
        """With which probability it does not hang on the last event whether the next is lost.

        A chain that keeps its state, but with probability q decides anew, with the stationary
        chance 1 − r to lose, leaves the state lost with probability q r: runs of losses have mean
        1/(q r) (Gilbert 1960). Losses that know nothing of each other are q = 1.

        >>> Channel(reliability=0.8, loss_burst=5.0).decided_anew
        0.25
        """
        return 1.0 / max(self.loss_burst * self.reliability, 1.0)


PERFECT = Channel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectivity:
    """A peer that is connected for a time ON and away for a time OFF; events wait meanwhile."""

    on: Law | None = spec(POSITIVE_LAW, "time connected", default=None)
    off: Law | None = spec(POSITIVE_LAW, "time away", default=None)
    trace: str | None = spec(
        replace(records.TEXT, read=read_named),
        "a `sessions` table (CSV, Parquet) to draw the periods from, instead of "
        "distributions; a relative path starts from the folder where the command runs; "
        "it must lie below the folder of the system file, or one of `tidings "
        "--files-below`",
        default=None,
    )
    replay: str = spec(
        records.choice("resample", "loop"),
        "how periods are taken from the trace: at random (resample), or in order, over "
        "and over (loop; a short trace then understates delays)",
        default="resample",
    )
    service: Law | None = spec(LAW, "time to hand one event over while connected", default=None)
    buffer: int | None = spec(
        records.whole(0),
        "events that may wait for the peer, besides one being handed over; no limit if left out",
        default=None,
    )


def _read_connectivity(place: Place) -> Connectivity | None:
    fields = given(place)
    if isinstance(place.value, Mapping) and (fields & _PERIODS) not in ({"on", "off"}, {"trace"}):
        place.report("either the distributions 'on' and 'off', or a 'trace'")
    elif "trace" not in fields and "replay" in fields:
        place.inside("replay").report("a 'trace', whose periods it draws", saw="none")
    connectivity: Connectivity | None = records.read_record(Connectivity, place)
    return connectivity


_PERIODS = {"on", "off", "trace"}

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
    repeat: bool = spec(
        records.FLAG,
        "start again after the last slot; if false, nothing is published after it",
        default=True,
    )

    @property
    def length_s(self) -> float:
        """How long all slots together are, in seconds."""
        return self.slot_s * len(self.per_s)


def _read_daily_rates(place: Place) -> DailyRates | None:
    rates: DailyRates | None = records.read_record(DailyRates, place)
    if rates is not None and not any(rates.per_s):
        place.inside("per_s").report("at least one rate above 0")
    return rates


DAILY_RATES = Kind(
    label="DailyRates",
    read=_read_daily_rates,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/DailyRates"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A queue inside a broker: a CPU, a disk, an output."""

    service: Service | None = spec(SERVICE, "time for one event of any type", default=None)
    demands: tuple[tuple[str, Law], ...] = spec(
        records.by_name(LAW), "time for one event, by event type", default=()
    )
    servers: int = spec(records.whole(1, MOST_SERVERS), "how many work in parallel", default=1)
    buffer: int | None = spec(
        records.whole(0), "events that may wait; no limit if left out", default=None
    )
    discipline: str = spec(records.choice(*DISCIPLINES), "order of service", default="fcfs")
    priorities: tuple[tuple[str, int], ...] = spec(PRIORITIES, PRIORITIES_MEAN, default=())

    def law_of(self, event_type: str, subscriptions: int) -> Law | None:
        """Give the service-time distribution of an event type, or None without a demand of it.

        It may depend on how many subscriptions the broker stores.
        """
        if self.service is not None:
            return self.service.with_stored(subscriptions)
        return dict(self.demands).get(event_type)

    def no_demand(self, at: str, event_type: str) -> Problem:
        """Describe the problem that a station serves all event types but this one.

        ``at`` is the location of the station in the file.
        """
        return Problem(
            at=f"{at}.demands",
            saw=f"no demand of the event type '{event_type}'",
            want=f"one of every type (given: {', '.join(dict(self.demands))})",
        )


def _read_station(place: Place) -> Station | None:
    fields = given(place)
    demands = "demands" in fields and place.inside("demands").value != {}
    if isinstance(place.value, Mapping) and ("service" in fields) == demands:
        place.report("either 'service' or 'demands' by event type")
    station: Station | None = records.read_record(Station, place)
    return station


STATION = Kind(
    label="a station",
    read=_read_station,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/Station"},
)
