"""A believable system with its three outcomes, made by sampling path delays; no engine needed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tidings.model import topology
from tidings.model.behaviour import Channel, Service
from tidings.model.content import ContentRow, ContentTable
from tidings.model.delay_grid import BINS, EDGES_S, bin_of
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential
from tidings.model.outcome import Outcome, table
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.reporting.page import Report, write_page

PATIENCE_MS = 180_000  # a page of thousands on a machine that does much else
TOPICS = ("stock", "fx", "weather", "delays")
EDGES = [
    ("frankfurt", "london"),
    ("frankfurt", "paris"),
    ("frankfurt", "vienna"),
    ("london", "dublin"),
    ("london", "new-york"),
    ("new-york", "chicago"),
    ("new-york", "toronto"),
    ("vienna", "athens"),
    ("vienna", "warsaw"),
]
NAMES = ["frankfurt", *(end for _, end in EDGES)]
SERVICE_S = dict(zip(NAMES, [25, 25, 20, 37, 20, 60, 40, 20, 80, 25], strict=True))


def sample_system(subscribers: int = 100, rename=lambda name: name) -> System:
    """Ten brokers in a tree, eight publishers of four topics, any number of subscribers."""
    rng = np.random.default_rng(5)
    losses = [0.002, 0.001, 0.01, 0.0, 0.03, 0.005, 0.0, 0.12, 0.004]
    return System(
        version=1,
        description="market data and airport weather",
        lifetime=Deterministic(value_s=1.0),
        brokers=tuple(
            Broker(name=rename(n), service=Service(law=Exponential(mean_s=SERVICE_S[n] / 1e3)))
            for n in NAMES
        ),
        links=tuple(
            Link(
                between=(rename(a), rename(b)),
                there=(channel := Channel(delay=Exponential(mean_s=0.03), reliability=1 - lost)),
                back=channel,
            )
            for (a, b), lost in zip(EDGES, losses, strict=True)
        ),
        publishers=tuple(
            Publisher(
                name=rename(f"feed {i}"),
                at=rename(NAMES[(3 * i) % 10]),
                every=Exponential(mean_s=0.32),
                content=ContentTable(
                    table=(
                        ContentRow(probability=0.7, event={"topic": TOPICS[i % 4], "level": 1}),
                        ContentRow(
                            probability=0.3,
                            event={"topic": TOPICS[i % 4], "level": 2},
                            lifetime=Deterministic(value_s=0.5) if i % 4 == 3 else None,
                        ),
                    )
                ),
            )
            for i in range(8)
        ),
        subscribers=tuple(
            Subscriber(
                name=rename(f"client {i:03d}"),
                at=rename(NAMES[int(rng.integers(10))]),
                wants=as_filter(
                    {"topic": TOPICS[int(rng.integers(4))]}
                    | ({} if rng.random() < 0.5 else {"level": int(rng.integers(1, 3))})
                ),
            )
            for i in range(subscribers)
        ),
    )


def sample_outcome(system: System, source: str, events: int, seed: int) -> Outcome:
    """Each subscriber's delays drawn from its paths: M/M/1 sojourns and link delays, losses."""
    rng = np.random.default_rng(seed)
    routes = route(system)
    rates = routes.rates(np.array([p.rate_per_s for p in system.publishers]))
    paths = _paths(system, routes)
    service = np.array([b.service.law.mean_s for b in system.brokers])
    arrivals = np.array([1 / 0.32 * 8] * len(service)) * np.linspace(0.9, 0.4, len(service))
    load = np.minimum(arrivals * service, 0.85)
    sojourn = service / (1 - load)
    subscribers, pairs, delays = [], [], []
    for index, subscriber in enumerate(system.subscribers):
        wanted = rates[:, routes.wanted_by(index)].sum(axis=1)
        found, limits = [], []
        for publisher in np.flatnonzero(wanted):
            share = wanted[publisher] / wanted.sum()
            n = max(1, round(events * share))
            brokers, arcs = paths[
                routes.home_of_publisher[publisher], routes.home_of_subscriber[index]
            ]
            times = sum(rng.exponential(sojourn[b], n) for b in brokers)
            times = times + sum((rng.exponential(0.03, n) for _ in arcs), np.zeros(n))
            for arc in arcs:
                times[rng.random(n) > routes.arcs[arc].channel.reliability] = math.inf
            rows = [
                row
                for row in routes.rows
                if row.publisher == publisher and routes.wanted_by(index)[row.content_class]
            ]
            weights = np.array([row.probability for row in rows])
            limit = rng.choice([r.lifetime.value_s for r in rows], n, p=weights / weights.sum())
            found.append(times)
            limits.append(limit)
            pairs.append(
                {
                    "publisher": system.publishers[publisher].name,
                    "subscriber": subscriber.name,
                    "wanted_per_s": wanted[publisher],
                    "events": n,
                    "on_time": np.mean(times <= limit),
                    "delivered": np.mean(np.isfinite(times)),
                    "late": np.mean(np.isfinite(times) & (times > limit)),
                }
            )
        times = np.concatenate(found) if found else np.array([])
        limit = np.concatenate(limits) if limits else np.array([])
        subscribers.append(_subscriber_row(subscriber, times, limit, wanted.sum(), source))
        if times.size:
            delays.extend(_delay_rows(subscriber.name, times))
    noisy = source != "predicted"
    brokers = [
        {
            "broker": b.name,
            "arrivals_per_s": arrivals[i],
            "utilisation": load[i] * (1 + noisy * rng.normal(0, 0.01)),
            "utilisation_se": 0.01 * load[i] if noisy else math.nan,
            "service_mean_s": service[i],
            "wait_mean_s": sojourn[i] - service[i],
            "wait_mean_se_s": 0.02 * sojourn[i] if noisy else math.nan,
        }
        for i, b in enumerate(system.brokers)
    ]
    links = [
        {
            "source": system.brokers[arc.source].name,
            "target": system.brokers[arc.target].name,
            "events_per_s": 12.0 / (1 + i // 2),
            "lost": 1 - arc.channel.reliability,
            "delay_mean_s": arc.channel.delay.mean_s,
        }
        for i, arc in enumerate(routes.arcs)
    ]
    return Outcome(
        source=source,
        subscribers=table("subscribers", subscribers),
        pairs=table("pairs", pairs),
        brokers=table("brokers", brokers),
        links=table("links", links),
        delays=table("delays", delays),
        provenance={
            "version": "0.1.0",
            "seed": seed,
            "models": {"queue": "M/M/1, whole law"},
            "approximations": ["sojourns on a path are independent"],
            "warnings": [],
        },
    )


def _paths(system, routes):
    tree = routes.trees[0]
    found = {}
    for start in range(len(system.brokers)):
        way = {start: ((start,), ())}
        for broker, into in topology.walk(tree, routes.arcs, start):
            if into >= 0:
                brokers, arcs = way[routes.arcs[into].source]
                way[broker] = ((*brokers, broker), (*arcs, into))
        found.update({(start, end): each for end, each in way.items()})
    return found


def _subscriber_row(subscriber, times, limit, wanted_per_s, source):
    arrived = times[np.isfinite(times)]
    on_time = np.mean(times <= limit) if times.size else math.nan
    predicted = source == "predicted"
    p50, p95, p99 = np.quantile(arrived, [0.5, 0.95, 0.99]) if arrived.size else [math.nan] * 3
    se = math.sqrt((on_time * (1 - on_time) + 1e-4) / times.size) if times.size else math.nan
    return {
        "subscriber": subscriber.name,
        "broker": subscriber.at,
        "count": 1,
        "wanted_per_s": wanted_per_s,
        "events": math.nan if predicted else times.size,
        "on_time": on_time,
        "on_time_se": math.nan if predicted else se,
        "delivered": arrived.size / times.size if times.size else math.nan,
        "late": np.mean(np.isfinite(times) & (times > limit)) if times.size else math.nan,
        "lost_link": 1 - arrived.size / times.size if times.size else 0.0,
        "delay_mean_s": arrived.mean() if arrived.size else math.nan,
        "delay_p50_s": p50,
        "delay_p95_s": p95,
        "delay_p99_s": p99,
    }


def _delay_rows(name, times):
    arrived = times[np.isfinite(times)]
    counts = np.bincount(bin_of(arrived), minlength=BINS)
    cumulative = np.cumsum(counts) / times.size
    return [
        {"subscriber": name, "delay_s": EDGES_S[i], "arrived": cumulative[i]}
        for i in np.flatnonzero(counts)
    ]


def sample_parameters(system: System) -> pd.DataFrame:
    """What characterisation gives, with the truth beside it."""
    rng = np.random.default_rng(8)
    rows = []
    for broker in system.brokers:
        truth = broker.service.law.mean_s
        se = truth / 80
        rows.append(
            {
                "path": f"brokers.{broker.name}.service",
                "estimate": truth + se * rng.normal(),
                "standard_error": se,
                "count": 6400,
                "family": "exponential",
                "goodness": 0.012,
                "unit": "s",
                "truth": truth,
            }
        )
    return pd.DataFrame(rows)


def sample_report(subscribers: int = 100, rename=lambda name: name, sources=None) -> Report:
    system = sample_system(subscribers, rename)
    events = {"predicted": 20_000, "simulated": 4_000, "measured": 1_200}
    if subscribers > 200:
        events = dict.fromkeys(events, 200)
    return Report(
        title="Market and airport feeds",
        system=system,
        outcomes={
            source: sample_outcome(system, source, events[source], seed)
            for seed, source in enumerate(events, start=11)
            if sources is None or source in sources
        },
        parameters=sample_parameters(system),
        notes=("The measured outcome comes from a recorded simulation.",),
    )


@pytest.fixture(scope="session")
def report() -> Report:
    return sample_report()


@pytest.fixture(scope="session")
def make_report():
    return sample_report


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report, and at the end insists that nothing was fetched and nothing went wrong."""
    complaints, requests, pages = [], [], []

    def show(report, address="", **options):
        path = write_page(report, tmp_path / "page.html")
        page = browser.new_page(**({"viewport": {"width": 1280, "height": 800}} | options))
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri() + address)
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.close()
    assert complaints == []
    # Nothing but the page itself, as often as it was opened; files to save come out of it.
    fetched = {url.partition("#")[0] for url in requests if not url.startswith("blob:")}
    assert fetched == {(tmp_path / "page.html").as_uri()}
