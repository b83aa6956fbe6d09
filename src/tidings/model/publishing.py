"""When a publisher publishes, where independent intervals do not say it.

Recorded times, a common clock, batches, bursts: what real publishers do and renewal streams do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidings.model import records
from tidings.model.behaviour import LAW, POSITIVE_LAW
from tidings.model.document import Place
from tidings.model.laws import Law
from tidings.model.laws.law import WEIGHT_SLACK
from tidings.model.named_files import read_named
from tidings.model.recorded_times import recorded_times
from tidings.model.records import Kind, given, spec

REPLAYS = ("resample", "loop")
BLOCKS = 8  # of a record, where nobody says how long they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A source that is on and off by turns, for exponential times, and Poisson while it is on."""

    rate_per_s: float = spec(records.RATE, "events per second while it is on", key="rate")
    on_s: float = spec(records.POSITIVE_TIME, "mean time on", key="on")
    off_s: float = spec(records.POSITIVE_TIME, "mean time off", key="off")

    @property
    def cycle_s(self) -> float:
        """Mean time from one beginning to the next, in seconds."""
        return self.on_s + self.off_s

    @property
    def share_on(self) -> float:
        """The long-run share of time in which it is on."""
        return self.on_s / self.cycle_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """When events are published: recorded times, by a clock, in batches, or in bursts."""

    recorded: str | None = spec(
        replace(records.TEXT, read=read_named),
        "a `publications` table (CSV, Parquet: published_ns and, of several publishers, "
        "publisher) whose times are published again; publishers of one file keep their times "
        "to each other. A relative path starts from the folder where the command runs; it must "
        "lie below the folder of the system file, or one of `tidings --files-below`",
        default=None,
    )
    length_s: float | None = spec(
        records.POSITIVE_TIME,
        "of the time that was recorded; from the first to the last event and a mean interval, "
        "if left out",
        default=None,
        key="length",
    )
    replay: str = spec(
        records.choice(*REPLAYS),
        "how recorded times come again: in blocks drawn at random (resample), or in order, from a "
        "random moment, over and over (loop)",
        default=REPLAYS[0],
    )
    block_s: float | None = spec(
        records.POSITIVE_TIME,
        "length of the blocks that are drawn; an eighth of the record if left out",
        default=None,
        key="block",
    )
    cycle_s: float | None = spec(
        records.POSITIVE_TIME,
        "blocks are moved by whole multiples of this, such as a day: what follows the time of "
        "day then still does",
        default=None,
        key="cycle",
    )
    speed: float = spec(
        records.number_from(1e-9), "how many times as fast a record comes again", default=1.0
    )
    period_s: float | None = spec(
        records.POSITIVE_TIME, "an event every so often, by a clock", default=None, key="period"
    )
    offset_s: float = spec(
        records.TIME, "how long after the clock's beat", default=0.0, key="offset"
    )
    clock: str | None = spec(
        records.TEXT,
        "name of a clock that several publishers share; one of its own if left out",
        default=None,
    )
    jitter: Law | None = spec(LAW, "how much later an event comes, each anew", default=None)
    every: Law | None = spec(POSITIVE_LAW, "time between two batches", default=None)
    batch: tuple[tuple[str, float], ...] = spec(
        records.by_name(records.SHARE),
        "share of batches by how many events they have, such as {1: 0.5, 8: 0.5}",
        default=(),
    )
    bursts: tuple[Burst, ...] = spec(
        records.listing(records.part(Burst), least=1),
        "sources that come and go independently; their events add up",
        default=(),
    )
    rate_per_s: float = spec(
        records.RATE, "of a Poisson stream beside the bursts", default=0.0, key="rate"
    )

    def mean_per_s(self, publisher: str) -> float:
        """Compute the long-run mean rate, in events per second.

        It reads the record, where there is one.
        """
        if self.recorded is not None:
            record = recorded_times(self.recorded, publisher, self.length_s)
            return self.speed * len(record.times_s) / record.length_s
        if self.period_s is not None:
            return 1.0 / self.period_s
        if self.bursts:
            return self.rate_per_s + sum(each.rate_per_s * each.share_on for each in self.bursts)
        assert self.every is not None
        return sum(int(size) * share for size, share in self.batch) / self.every.mean_s

    def faster(self, times: float) -> Publishing:
        """Make a copy with ``times`` as many events per second."""
        if self.recorded is not None:
            return replace(self, speed=self.speed * times)
        if self.period_s is not None:
            return replace(
                self,
                period_s=self.period_s / times,
                offset_s=self.offset_s / times,
                jitter=None if self.jitter is None else self.jitter.scaled(1.0 / times),
            )
        if self.bursts:
            bursts = tuple(
                replace(each, rate_per_s=each.rate_per_s * times) for each in self.bursts
            )
            return replace(self, bursts=bursts, rate_per_s=self.rate_per_s * times)
        assert self.every is not None
        return replace(self, every=self.every.scaled(1.0 / times))


# What each form is known by, and what may stand beside it.
_FORMS = {
    "recorded": {"length", "replay", "block", "cycle", "speed"},
    "period": {"offset", "clock", "jitter"},
    "batch": {"every"},
    "bursts": {"rate"},
}
_WANT = "one of 'recorded', 'period', 'batch' (with 'every') and 'bursts'"


def _read_publishing(place: Place) -> Publishing | None:
    fields = given(place)
    forms = [form for form in _FORMS if form in fields]
    if isinstance(place.value, Mapping) and len(forms) != 1:
        place.report(_WANT, saw=" and ".join(forms) or "none of them")
    elif forms:
        others = fields - {forms[0]} - _FORMS[forms[0]]
        for name in sorted(others & set(records.document_fields(Publishing))):
            place.inside(name).report(f"nothing beside '{forms[0]}', of which it says nothing")
        if forms[0] == "batch":
            _check_batch(place)
    publishing: Publishing | None = records.read_record(Publishing, place)
    if publishing is not None and publishing.bursts and publishing.mean_per_s("") == 0.0:
        place.report("a rate above 0, of a burst or beside them")
    return publishing


def _check_batch(place: Place) -> None:
    if place.inside("every").value is None:
        place.report("'every' beside 'batch': the time between two batches", saw="none")
    sizes = place.inside("batch").value
    if not isinstance(sizes, Mapping):
        return
    for size in sizes:
        if not str(size).isdecimal() or int(str(size)) < 1:
            place.inside("batch", size).report(
                "a number of events, 1 or more", saw=f"the size '{size}'"
            )
    shares = [each for each in sizes.values() if isinstance(each, int | float)]
    if len(shares) == len(sizes) and abs(sum(shares) - 1.0) > WEIGHT_SLACK:
        place.inside("batch").report("shares that sum to 1", saw=f"a sum of {sum(shares):.12g}")


PUBLISHING = Kind(
    label="Publishing",
    read=_read_publishing,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/Publishing"},
)
