"""A state as metrics in the OpenMetrics format, with as many labels as were allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from tidings.serving import words
from tidings.watching.state import KINDS, Health, Share, Standing, State

CONTENT_TYPE = CONTENT_TYPE_LATEST

Labelled = Iterable[tuple[tuple[str, ...], float | None]]


def metrics_text(state: State | None, most_labels: int) -> bytes:
    """Write a state as OpenMetrics text: everybody, and the worst subscribers up to so many."""
    registry = CollectorRegistry()
    registry.register(_StateCollector(state, most_labels))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


class _StateCollector(Collector):
    def __init__(self, state: State | None, most_labels: int) -> None:
        self._state = state
        self._most = most_labels

    def collect(self) -> Iterator[Metric]:
        """Give the metrics of the state; without one, only that there is none."""
        state = self._state
        yield _gauge("tidings_up", "1 if a state of the watched system is known", state is not None)
        if state is None:
            return
        people = words.subscribers(state)
        shown = [words.everybody(state), *people[: self._most]]
        yield _gauge("tidings_subscribers", "Subscribers that are judged", len(people))
        yield _gauge(
            "tidings_subscribers_below_promise",
            "Subscribers whose share on time is surely below the promise",
            sum(map(words.is_below, people)),
        )
        yield from _shares(shown)
        yield _labelled(
            "tidings_burn_rate",
            "Error budget spent; at 1 it lasts exactly its period; subscriber '' is everybody",
            ("subscriber", "window"),
            (((e.name, w), rate) for e in shown for w, rate in (e.burn_rates or {}).items()),
        )
        yield _labelled(
            "tidings_delay_seconds",
            "Measured delay of delivered events",
            ("subscriber", "quantile"),
            (
                ((each.name, quantile), value)
                for each in shown
                for quantile, value in (("0.5", each.median_s), ("0.99", each.p99_s))
            ),
        )
        yield _labelled(
            "tidings_wanted_events",
            "Wanted events in the judged window",
            ("subscriber",),
            (((each.name,), each.wanted) for each in shown),
        )
        yield from _backlogs(state.backlogs, self._most)
        yield from _alarms(state)
        yield from _stream(state.health)
        yield _gauge("tidings_state_timestamp_seconds", "When this was judged", state.at_ns / 1e9)
        yield _gauge("tidings_window_seconds", "Window over which shares count", state.window_s)


def _shares(shown: Iterable[Standing]) -> Iterator[Metric]:
    """Yield shares on time by subscriber and source, and the ends of their intervals."""
    rows = [
        (each.name, source, share)
        for each in shown
        for source, share in (
            ("promised", each.promised),
            ("measured", each.measured),
            ("predicted", each.predicted),
        )
        if share is not None
    ]
    parts = {
        "": "Share of wanted events on time; subscriber '' is everybody",
        "_low": "Lower end of the interval of the share on time",
        "_high": "Upper end of the interval of the share on time",
    }
    for end, help_text in parts.items():
        part = end.removeprefix("_") or "share"
        yield _labelled(
            f"tidings_on_time{end}_ratio",
            help_text,
            ("subscriber", "source"),
            (
                ((name, source), getattr(share, part) if isinstance(share, Share) else share)
                for name, source, share in rows
                if isinstance(share, Share) or not end
            ),
        )


def _backlogs(backlogs: Mapping[str, int], most: int) -> Iterator[Metric]:
    longest = sorted(backlogs.items(), key=lambda each: -each[1])[:most]
    yield _labelled(
        "tidings_backlog_events",
        "Events waiting, by broker or group",
        ("place",),
        (((name,), count) for name, count in longest),
    )
    yield _gauge("tidings_backlog_all_events", "Events waiting anywhere", sum(backlogs.values()))


def _alarms(state: State) -> Iterator[Metric]:
    lasting = words.lasting(state)
    yield _labelled(
        "tidings_alarms",
        "Alarms that last",
        ("kind",),
        (((kind,), sum(each.count for each in lasting if each.kind == kind)) for kind in KINDS),
    )
    yield _labelled(
        "tidings_alarm_since_timestamp_seconds",
        "Since when the oldest alarm of a kind lasts",
        ("kind",),
        (
            ((kind,), min(each.since_ns for each in lasting if each.kind == kind) / 1e9)
            for kind in sorted({each.kind for each in lasting} & {*KINDS})
        ),
    )


def _stream(health: Health) -> Iterator[Metric]:
    """Yield metrics of how the watching itself fares."""
    yield _gauge("tidings_batch", "Number of the latest batch", health.batch)
    yield _gauge("tidings_batch_rows", "Rows in the latest batch", health.rows)
    yield _gauge("tidings_batch_seconds", "How long the latest batch took", health.batch_s)
    yield _gauge("tidings_trigger_seconds", "How often a batch is due", health.trigger_s)
    yield _gauge("tidings_newest_event_age_seconds", "Age of the newest event", health.behind_s)
    yield _gauge("tidings_batch_failed", "1 if the latest look had a problem", bool(health.problem))
    if health.fitted_ns:
        yield _gauge(
            "tidings_fitted_timestamp_seconds",
            "When a system was last fitted",
            health.fitted_ns / 1e9,
        )
    yield CounterMetricFamily(
        "tidings_late_rows", "Rows that came later than the margin", value=health.late_rows
    )
    yield CounterMetricFamily(
        "tidings_set_aside_rows", "Rows that could not be read", value=health.set_aside_rows
    )
    yield CounterMetricFamily(
        "tidings_refused_files", "Files that could not be read", value=health.refused_files
    )


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=float(value))


def _labelled(name: str, help_text: str, labels: tuple[str, ...], rows: Labelled) -> Metric:
    """Make a gauge with labels; names that end up alike are one series: two would void the page."""
    family = GaugeMetricFamily(name, help_text, labels=labels)
    seen = set()
    for values, number in rows:
        # A lone half of a surrogate pair may come in with a name; UTF-8 has no place for it.
        written = tuple(each.encode("utf-8", "replace").decode("utf-8") for each in values)
        if number is not None and math.isfinite(number) and written not in seen:
            seen.add(written)
            family.add_metric(written, number)
    return family
