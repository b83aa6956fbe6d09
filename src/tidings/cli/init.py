"""``tidings init``: a first system file from running brokers, from a graph, or from nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options
from tidings.model.writing import check_file, write_file

if TYPE_CHECKING:
    from tidings.model.progress import Progress
    from tidings.running.network import SeenNetwork

# Kinds of brokers, and how their addresses begin.
_KINDS = {
    "nats": ("nats", "tls", "ws", "wss", "http", "https"),
    "rabbitmq": ("http", "https"),
    "mqtt": ("mqtt", "mqtts"),
    "kafka": ("kafka", "kafkas"),
}
_STARTER = """\
# A system to begin with: change what differs from yours, then run 'tidings predict' on it.
tidings: 1
description: two brokers, one link, three clients
lifetime: 500ms                     # how long an event is of use; later is late
brokers:
  hub: {service: {exponential: 2ms}}   # time to match and forward one event
  edge: {service: {exponential: 2ms}}
links:
  - {between: [hub, edge], delay: 10ms, reliability: 0.999}
publishers:
  sensors:
    at: hub
    every: {rate: 50/s}               # Poisson; 'every: 20ms' is one event each 20 ms
    content:
      - {p: 0.9, event: {topic: temperature}}
      - {p: 0.1, event: {topic: alarm}}
subscribers:
  dashboard: {at: edge, wants: {topic: temperature}}
  pager: {at: edge, wants: {topic: alarm}, lifetime: 100ms}
"""
_FROM_GRAPH = """\
# Brokers and links are those of the graph. Assumed, for you to change: the lifetime, the service of
# every broker, the publisher and the subscriber.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """The text of a file, what was asked for it, which values are assumed, what to know of it."""

    text: str
    asked: tuple[str, ...] = ()
    assumed: list[dict[str, str]] = field(default_factory=list)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _BrokerQuestions:
    """How running brokers are asked."""

    time_s: float
    credentials: Path | None
    bridges: tuple[str, ...]
    groups: tuple[str, ...]


def init(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[nats|rabbitmq|mqtt|kafka] URL...",
            help="NATS: nats://USER:PASSWORD@HOST:PORT with a user of the system account, which "
            "reaches every server of the cluster; without one, the monitoring page of each "
            "server, http://HOST:8222. RabbitMQ: the word rabbitmq, then "
            "http://USER:PASSWORD@HOST:15672. MQTT: "
            "mqtt://USER:PASSWORD@HOST:1883, one for each broker. Kafka: "
            "kafka://HOST:9092,HOST:9092.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write to FILE instead of printing."),
    ] = None,
    time: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="TIME",
            help="NATS, Kafka: time between two readings of counters; RabbitMQ: how far back to "
            "average rates; MQTT: how long to listen to all messages.",
        ),
    ] = "5s",
    credentials: Annotated[
        Path | None,
        typer.Option(
            "--creds",
            metavar="FILE",
            help="Credentials file of a NATS user; for Kafka, settings of the client (librdkafka), "
            "a line key=value each.",
        ),
    ] = None,
    bridge: options.Bridges = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="NAME",
            help="Kafka: ask for this consumer group, not for all. Can be repeated.",
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="GRAPH", help="Begin from a GraphML, GML or node-link JSON file."
        ),
    ] = None,
    empty: Annotated[
        bool, typer.Option("--empty", help="Begin from a small commented example.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Write a first system file from running NATS, RabbitMQ, MQTT or Kafka brokers; it only reads.

    Every number that no server reported is marked 'assumed', with a reason.

    Example: tidings init nats://sys:secret@localhost:4222 --to city.yaml
    """
    if sum((bool(source), graph is not None, empty)) != 1:
        raise typer.BadParameter("wants one of: URL..., --from GRAPH, --empty")
    if to is not None:
        check_file(to)
    if empty:
        draft = _Draft(text=_STARTER)
    elif graph is not None:
        draft = _of_graph(graph)
    else:
        asked = _BrokerQuestions(
            time_s=options.seconds(time),
            credentials=credentials,
            bridges=tuple(bridge or ()),
            groups=tuple(group or ()),
        )
        draft = _of_servers(source or [], asked)
    _hand_over(draft, to, as_json=json)


def _hand_over(draft: _Draft, to: Path | None, *, as_json: bool) -> None:
    """Write or print a draft, and say what was asked and what is assumed."""
    if to is not None:
        write_file(to, draft.text.encode())
    if as_json:
        console.show_json({"file": None if to is None else str(to), **asdict(draft)})
    elif to is None:
        typer.echo(draft.text, nl=False)
    if draft.asked:
        console.note(f"asked {len(draft.asked)} questions, all of them reading (--json lists them)")
    if draft.assumed:
        console.note(f"{len(draft.assumed)} values are assumed; look for 'assumed' in the file")
    if to is not None:
        console.note(f"wrote {to}; next: tidings check {to}, then tidings predict {to}")
    console.warn(draft.notes)


def _of_servers(source: list[str], asked: _BrokerQuestions) -> _Draft:
    """Draft a system from what running brokers tell; the first word may say which kind they are."""
    from tidings.running.network import assumptions, completed, file_text

    named = source[0] in _KINDS
    addresses = source[1:] if named else source
    kind = source[0] if named else _kind_of(source[0])
    _check(kind, addresses, asked)
    with console.progress("asking servers") as step:
        network, questions = _ask(kind, addresses, asked, step)
    network = completed(network)
    return _Draft(
        text=file_text(network), asked=questions, assumed=assumptions(network), notes=network.notes
    )


def _kind_of(address: str) -> str:
    """Find the kind of broker that an address begins with; NATS where it is not said."""
    scheme = address.partition("://")[0].removesuffix("s")
    return scheme if scheme in ("mqtt", "kafka") else "nats"


def _check(kind: str, addresses: list[str], asked: _BrokerQuestions) -> None:
    """Refuse addresses of another kind, and options that another kind of broker has."""
    from tidings.running.asking import hidden

    if asked.bridges and kind != "mqtt":
        raise typer.BadParameter("--bridge is for MQTT; other brokers know their neighbours")
    if asked.groups and kind != "kafka":
        raise typer.BadParameter("--group is for Kafka; other brokers are asked for everything")
    if asked.credentials is not None and kind not in ("nats", "kafka"):
        raise typer.BadParameter("--creds is for NATS and Kafka; others have users in addresses")
    wrong = [each for each in addresses if each.partition("://")[0] not in _KINDS[kind]]
    if wrong or not addresses or (kind == "rabbitmq" and len(addresses) > 1):
        seen = hidden(wrong[0]) if wrong else kind
        raise typer.BadParameter(
            f"'{seen}': wants nats://HOST:PORT, http://HOST:PORT of NATS's monitoring pages, "
            "mqtt://HOST:PORT, kafka://HOST:PORT, or 'rabbitmq' and http://HOST:PORT of its "
            "management API"
        )


def _ask(
    kind: str, addresses: list[str], asked: _BrokerQuestions, step: Progress
) -> tuple[SeenNetwork, tuple[str, ...]]:
    """Ask brokers of one kind; gives what they tell, and what they were asked."""
    if kind == "mqtt":
        from tidings.running.mqtt import read_mqtt

        step(f"listening for {asked.time_s:g} s")
        return read_mqtt(addresses, asked.time_s, asked.bridges)
    if kind == "rabbitmq":
        from tidings.running.rabbitmq import read_rabbitmq

        step("reading the management API")
        return read_rabbitmq(addresses[0], asked.time_s)
    if kind == "kafka":
        from tidings.running.kafka_network import read_kafka

        step(f"reading counters twice, {asked.time_s:g} s apart")
        return read_kafka(addresses, asked.time_s, asked.credentials, asked.groups)
    return _of_nats(addresses, asked, step)


def _of_nats(
    addresses: list[str], asked: _BrokerQuestions, step: Progress
) -> tuple[SeenNetwork, tuple[str, ...]]:
    from tidings.running.nats_network import nats_network
    from tidings.running.nats_pages import two_rounds

    creds = None if asked.credentials is None else str(asked.credentials)
    first, second = two_rounds(addresses, asked.time_s, creds, step)
    return nats_network(first, second), (*first.asked, *second.asked)


def _of_graph(path: Path) -> _Draft:
    """Draft a system from brokers and links of a graph.

    Services and two clients are added to make it a whole system.
    """
    from tidings.model.graph_files import read_topology
    from tidings.model.yaml_text import dump

    topology = read_topology(path)
    document = dict(topology.document)
    names = list(document["brokers"])
    document["lifetime"] = "1s"
    document["brokers"] = {
        name: {"service": {"exponential": "1ms"}, **broker}
        for name, broker in document["brokers"].items()
    }
    document["publishers"] = {
        "publisher": {
            "at": names[0],
            "every": {"rate": "10/s"},
            "content": {"event": {"topic": "a"}},
        }
    }
    document["subscribers"] = {"subscriber": {"at": names[-1], "wants": {"topic": "a"}}}
    return _Draft(text=_FROM_GRAPH + dump(document), notes=topology.notes)
