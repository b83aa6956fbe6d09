"""What must hold across a whole system description, beyond each field on its own.

The checks run on what could be read, even where other parts could not, so that one reading reports
everything. A name counts as known when it stands in the document, whether or not its own record is
in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.model import topology
from tidings.model.document import Place
from tidings.model.system import FORMAT_VERSION, Broker, Link, Publisher, Routing


def check_system(parts: Mapping[str, Any], place: Place) -> None:
    """Note every problem between the parts of a system, at its place."""
    document = place.value if isinstance(place.value, Mapping) else {}
    names = {
        section: list(document[section]) if isinstance(document.get(section), Mapping) else []
        for section in ("brokers", "publishers", "subscribers", "networks")
    }
    if parts.get("version") not in (FORMAT_VERSION, None):
        place.child("tidings", parts["version"]).report(
            f"{FORMAT_VERSION}", fix="this version of Tidings reads format 1"
        )
    if isinstance(document.get("brokers"), Mapping) and not names["brokers"]:
        place.child("brokers", {}).report("at least one broker")
    _check_names(names, place)
    _check_homes(document, names["brokers"], place)
    _check_brokers(parts.get("brokers") or (), document, place)
    _check_publishers(parts, document, place)
    _check_networks(document, names["networks"], place)
    good = _check_links(parts.get("links") or (), names["brokers"], document, place)
    _check_ways(parts.get("routing"), names["brokers"], good, document, place)
    _check_members(parts, names["brokers"], document, place)
    _check_paths_of_errors(parts, names, good, place)


def _at(place: Place, *path: str | int) -> Place:
    """The place of a nested part, with the value that stands there."""
    value = place.value
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            value = None
    return Place(value, (*place.path, *path), place.problems, place.lines)


def _check_names(names: Mapping[str, Sequence[str]], place: Place) -> None:
    """Brokers and peers share one space of names: links and traces refer to them alike."""
    kind_of: dict[str, str] = {}
    for section in ("brokers", "publishers", "subscribers"):
        for name in names[section]:
            if not name.strip() or "--" in name:
                _at(place, section, name).report(
                    "a name that is not empty and has no '--' in it (that joins the ends of links)",
                    saw=f"the name '{name}'",
                )
            if name in kind_of:
                _at(place, section, name).report(
                    "a name of its own", saw=f"'{name}', which is also among the {kind_of[name]}"
                )
            kind_of.setdefault(name, section)


def _known(name: object, brokers: Sequence[str]) -> bool:
    return not isinstance(name, str) or name in brokers


def _unknown_broker(place: Place, brokers: Sequence[str]) -> None:
    shown = ", ".join(brokers[:8]) + (", …" if len(brokers) > 8 else "")
    place.report(f"one of the brokers {shown or '(there are none)'}")


def _check_homes(document: Mapping[str, Any], brokers: Sequence[str], place: Place) -> None:
    known = set(brokers)
    for section in ("publishers", "subscribers"):
        peers = document.get(section)
        for name, peer in peers.items() if isinstance(peers, Mapping) else ():
            home = peer.get("at") if isinstance(peer, Mapping) else None
            if isinstance(home, str) and home not in known:
                _unknown_broker(_at(place, section, name, "at"), brokers)


def _check_brokers(
    brokers: Sequence[Broker | None], document: Mapping[str, Any], place: Place
) -> None:
    event_type = document.get("event_type")
    for broker in brokers:
        if broker is None:
            continue
        plain = Broker(name=broker.name)
        told = [n for n in ("servers", "buffer", "discipline") if _differ(broker, plain, n)]
        if broker.service is None and told:
            _at(place, "brokers", broker.name).report(
                f"a 'service' law, as '{told[0]}' is of the queue before it", saw="none"
            )
        if any(station.demands for station in broker.stations) and event_type is None:
            _at(place, "brokers", broker.name).report(
                "'event_type' at the top of the file: the attribute that is an event's type",
                saw="demands by event type",
            )


def _differ(one: object, other: object, field: str) -> bool:
    return bool(getattr(one, field) != getattr(other, field))


def _check_publishers(parts: Mapping[str, Any], document: Mapping[str, Any], place: Place) -> None:
    for publisher in parts.get("publishers") or ():
        if isinstance(publisher, Publisher) and (publisher.every is None) == (
            publisher.rates is None
        ):
            _at(place, "publishers", publisher.name).report(
                "either 'every' (time between events) or 'rates' (by time of day)",
                saw="neither" if publisher.every is None else "both",
            )
    for section in ("publishers", "subscribers"):
        if isinstance(document.get(section), Mapping) and not document[section]:
            _at(place, section).report(f"at least one of the {section}")


def _check_networks(document: Mapping[str, Any], networks: Sequence[str], place: Place) -> None:
    def check(at: Place) -> None:
        if isinstance(at.value, str) and at.value not in networks:
            at.report(f"one of the networks {', '.join(networks) or '(there are none)'}")

    links = document.get("links")
    for index, link in enumerate(links if isinstance(links, list) else ()):
        if isinstance(link, Mapping):
            check(_at(place, "links", index, "network"))
            check(_at(place, "links", index, "back", "network"))
    for section in ("publishers", "subscribers"):
        peers = document.get(section)
        for name in peers if isinstance(peers, Mapping) else ():
            check(_at(place, section, name, "link", "network"))


def _check_links(
    links: Sequence[Link | None],
    brokers: Sequence[str],
    document: Mapping[str, Any],
    place: Place,
) -> list[tuple[str, str]] | None:
    """The ends of all links, or None where not all of them could be made out."""
    raw = document.get("links")
    if raw is not None and not isinstance(raw, list):
        return None
    ends: list[tuple[str, str]] = []
    sound = True
    first_at: dict[frozenset[str], int] = {}
    for index, _ in enumerate(raw or ()):
        pair = _at(place, "links", index, "between").value
        if not isinstance(pair, list) or len(pair) != 2 or not all(_is_name(end) for end in pair):
            sound = False
            continue
        unknown = [end for end in pair if end not in brokers]
        for end in unknown:
            _unknown_broker(_at(place, "links", index, "between", pair.index(end)), brokers)
        if pair[0] == pair[1]:
            _at(place, "links", index, "between").report("two different brokers", saw=str(pair[0]))
        elif frozenset(pair) in first_at:
            _at(place, "links", index, "between").report(
                f"one link for each two brokers (links[{first_at[frozenset(pair)] + 1}] is it)",
                saw=f"another link between {pair[0]} and {pair[1]}",
            )
        elif not unknown:
            first_at[frozenset(pair)] = index
            ends.append((pair[0], pair[1]))
            continue
        sound = False
    return ends if sound else None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _check_ways(
    routing: Routing | None,
    brokers: Sequence[str],
    ends: list[tuple[str, str]] | None,
    document: Mapping[str, Any],
    place: Place,
) -> None:
    """The links must join all brokers, and events must have one tree to follow."""
    if routing is not None:
        _check_routing(routing, brokers, ends, place)
    if ends is None or not brokers:
        return
    parts = topology.components(brokers, ends)
    if len(parts) > 1:
        lone = [name for part in parts[1:] for name in part]
        shown = ", ".join(lone[:8]) + (", …" if len(lone) > 8 else "")
        _at(place, "links").report(
            "links that join all brokers", saw=f"no way from {parts[0][0]} to {shown}"
        )
    cycle = topology.find_cycle(ends)
    if cycle and document.get("routing") is None:
        _at(place, "links").report(
            "a tree",
            saw=f"a cycle through {', '.join(cycle[:8])}",
            fix="say which tree events follow: routing: {root: BROKER} or {tree: [[a, b], ...]}",
        )


def _check_routing(
    routing: Routing,
    brokers: Sequence[str],
    ends: list[tuple[str, str]] | None,
    place: Place,
) -> None:
    at = _at(place, "routing")
    if routing.root is not None and routing.root not in brokers:
        _unknown_broker(_at(at, "root"), brokers)
    for value, root in routing.roots:
        if root not in brokers:
            _unknown_broker(_at(at, "roots", value), brokers)
    if (routing.by is None) != (not routing.roots):
        at.report("'by' and 'roots' together: an attribute, and a root for each of its values")
    if routing.tree is not None and routing.root is not None:
        at.report("either 'root' or 'tree'", saw="both")
    if routing.by is not None and routing.root is None and routing.tree is None:
        at.report(
            "also 'root': the tree for events that carry none of the values", saw="only 'roots'"
        )
    if routing.by is None and routing.root is None and routing.tree is None:
        at.report("'root', 'tree', or 'by' with 'roots'", saw="none of them")
    if routing.tree is not None and ends is not None:
        _check_tree(routing.tree, brokers, ends, _at(at, "tree"))


def _check_tree(
    tree: Sequence[tuple[str, ...]],
    brokers: Sequence[str],
    ends: list[tuple[str, str]],
    place: Place,
) -> None:
    existing = {frozenset(pair) for pair in ends}
    chosen = []
    for index, pair in enumerate(tree):
        if len(pair) != 2 or frozenset(pair) not in existing:
            _at(place, index).report("one of the links", saw=" -- ".join(pair))
        else:
            chosen.append((pair[0], pair[1]))
    cycle = topology.find_cycle(chosen)
    if cycle:
        place.report("a tree", saw=f"a cycle through {', '.join(cycle)}")
    elif len(topology.components(brokers, chosen)) > 1 and len(chosen) == len(tree):
        place.report("links that join all brokers", saw=f"{len(chosen)} links that do not")


def _check_members(
    parts: Mapping[str, Any], brokers: Sequence[str], document: Mapping[str, Any], place: Place
) -> None:
    links = {link.name for link in parts.get("links") or () if link is not None}
    links |= {"--".join(reversed(name.split("--"))) for name in links}
    for group in parts.get("failure_groups") or ():
        for index, member in enumerate(group.members if group is not None else ()):
            if member not in brokers and member not in links:
                _at(place, "failure_groups", group.name, "members", index).report(
                    "the name of a broker, or of a link as a--b"
                )


def _check_paths_of_errors(
    parts: Mapping[str, Any],
    names: Mapping[str, Sequence[str]],
    ends: list[tuple[str, str]] | None,
    place: Place,
) -> None:
    links = {name for a, b in ends or () for name in (f"{a}--{b}", f"{b}--{a}")}
    known = {**{section: set(each) for section, each in names.items()}, "links": links}
    for path, _ in parts.get("standard_errors") or ():
        section, _, rest = path.partition(".")
        owners = known.get(section, set())
        if not any(rest == owner or rest.startswith(f"{owner}.") for owner in owners):
            _at(place, "standard_errors", path).report(
                "the path of a parameter, such as brokers.hub.service or links.a--b.delay",
                saw=f"the path '{path}'",
            )
