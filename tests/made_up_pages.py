"""Systems of any shape with outcomes drawn by lot, for pages: the numbers need only be possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import networkx as nx
import numpy as np

from tidings.model.behaviour import Channel, Service
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential
from tidings.model.outcome import Outcome, table
from tidings.model.system import Broker, Link, Publisher, Routing, Subscriber, System
from tidings.reporting.page import Report

TOPICS = ("orders", "prices", "alarms")
Rename = Callable[[str], str]


def star(brokers: int) -> nx.Graph:
    return nx.star_graph(brokers - 1)


def random_tree(brokers: int) -> nx.Graph:
    return nx.random_labeled_tree(brokers, seed=3)


def mesh(brokers: int) -> nx.Graph:
    side = round(brokers**0.5)
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))


SHAPES: dict[str, Callable[[int], nx.Graph]] = {
    "star": star,
    "line": nx.path_graph,
    "tree": random_tree,
    "ring": nx.cycle_graph,
    "mesh": mesh,
}


def made_up_system(
    shape: str, brokers: int, subscribers: int, rename: Rename = lambda name: name
) -> System:
    """A network of a shape, with publishers of three topics and subscribers in groups."""
    graph = SHAPES[shape](brokers)
    names = [rename(f"site {number:02d}") for number in graph]
    channel = Channel(delay=Exponential(mean_s=0.02), reliability=0.99)
    routing = None if nx.is_tree(graph) else Routing(root=names[0])
    return System(
        version=1,
        routing=routing,
        lifetime=Deterministic(value_s=1.0),
        brokers=tuple(
            Broker(name=name, service=Service(law=Exponential(mean_s=0.01))) for name in names
        ),
        links=tuple(
            Link(between=(names[one], names[other]), there=channel, back=channel)
            for one, other in graph.edges
        ),
        publishers=tuple(
            Publisher(
                name=rename(f"feed {topic}"),
                at=names[number % len(names)],
                every=Exponential(mean_s=0.5),
                content=ContentTable(table=(ContentRow(probability=1.0, event={"topic": topic}),)),
            )
            for number, topic in enumerate(TOPICS)
        ),
        subscribers=tuple(
            Subscriber(
                name=rename(f"client {number:04d}"),
                at=names[number % len(names)],
                wants=as_filter({"topic": TOPICS[number % 3]}),
                group=rename(f"desk {number % 4}"),
            )
            for number in range(subscribers)
        ),
    )


def drawn_outcome(system: System, source: str = "predicted", curves: int = 0) -> Outcome:
    """Shares and loads by lot, causes at the first broker and link, some delay curves."""
    rng = np.random.default_rng(4)
    names = [each.name for each in system.subscribers]
    lost = rng.random(len(names)) * 0.1
    late = rng.random(len(names)) * 0.5
    worst = [names[index] for index in np.argsort(lost + late)[::-1][:curves]]
    links = [link.between[::way] for link in system.links for way in (1, -1)]
    first = system.brokers[0].name
    places = [("waiting", first), ("loss", " → ".join(links[0]) if links else first)]
    return Outcome(
        source=source,
        subscribers=table(
            "subscribers",
            {
                "subscriber": names,
                "broker": [each.at for each in system.subscribers],
                "count": np.ones(len(names)),
                "wanted_per_s": np.full(len(names), 2.0),
                "on_time": 1 - lost - late,
                "delivered": 1 - lost,
                "late": late,
                "lost_link": lost,
                "delay_mean_s": 0.1 + late,
                "delay_p95_s": 0.3 + late,
            },
        ),
        brokers=table(
            "brokers",
            {
                "broker": [each.name for each in system.brokers],
                "arrivals_per_s": rng.random(len(system.brokers)) * 50,
                "utilisation": rng.random(len(system.brokers)),
                "service_mean_s": np.full(len(system.brokers), 0.01),
                "wait_mean_s": rng.random(len(system.brokers)) * 0.1,
            },
        ),
        links=table(
            "links",
            {
                "source": [one for one, _ in links],
                "target": [other for _, other in links],
                "events_per_s": rng.random(len(links)) * 20,
                "lost": np.where(rng.random(len(links)) < 0.2, 0.03, 0.0),
                "delay_mean_s": np.full(len(links), 0.02),
            },
        ),
        delays=table(
            "delays",
            [
                {"subscriber": name, "delay_s": delay_s, "arrived": delay_s / (delay_s + 0.2)}
                for name in worst
                for delay_s in (0.01, 0.1, 0.5, 1.0, 4.0)
            ],
        ),
        causes=table(
            "causes",
            [
                {"subscriber": name, "cause": cause, "place": place, "cost": 0.1 / rank}
                for name in names
                for rank, (cause, place) in enumerate(places, start=1)
            ],
        ),
        provenance={
            "seed": 4,
            "warmup_s": 1 / 3,
            "messages": {"per_delivery": {"messages": {"value": 1 / 3, "se": 0.0}}},
        },
    )


def made_up_report(
    shape: str = "star",
    brokers: int = 15,
    subscribers: int = 60,
    rename: Rename = lambda name: name,
    sections: Sequence[object] = (),
) -> Report:
    system = made_up_system(shape, brokers, subscribers, rename)
    outcomes = {"predicted": drawn_outcome(system, curves=5)}
    return Report(title=rename("Made up"), system=system, outcomes=outcomes, sections=sections)
