"""What must hold of the links of a system as a whole: ends that are known, one tree to follow.

Where some links could not be made out, the others are checked all the same; but nothing is called
out of reach that a link with a mistake might reach once it is mended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model import topology
from tidings.model.document import Place, meant_name


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnds:
    """What could be made out of the links, by the brokers they join."""

    joined: tuple[tuple[str, str], ...]  # two different known brokers each, no pair twice
    names: frozenset[str]  # as a--b and b--a, also of links whose brokers are unknown
    nameless: int  # links of which not both ends could be read
    wrong: int  # links that stand in no pair of ``joined``


def check_links(brokers: Sequence[str] | None, place: Place) -> LinkEnds | None:
    """Find the ends of the links and report their problems; give None if the links are no list.

    ``brokers`` is None where they could not be read; every name is then taken for known.
    """
    links = place.inside("links")
    if links.value is not None and not isinstance(links.value, list):
        return None
    pairs: list[tuple[str, str] | None] = []
    first_at: dict[frozenset[str], int] = {}
    for index in range(len(links.value or ())):
        between = links.inside(index, "between")
        pair = _pair(between.value)
        pairs.append(pair)
        if pair is not None and _is_sound(pair, brokers, between, first_at):
            first_at[frozenset(pair)] = index
    named = [pair for pair in pairs if pair is not None]
    sound = set(first_at.values())
    joined = tuple(pair for index, pair in enumerate(pairs) if pair and index in sound)
    return LinkEnds(
        joined=joined,
        names=frozenset("--".join(each) for pair in named for each in (pair, pair[::-1])),
        nameless=len(pairs) - len(named),
        wrong=len(pairs) - len(joined),
    )


def _pair(value: Any) -> tuple[str, str] | None:
    if isinstance(value, list) and len(value) == 2 and all(map(_is_text, value)):
        return value[0], value[1]
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_sound(
    pair: tuple[str, str],
    brokers: Sequence[str] | None,
    between: Place,
    first_at: Mapping[frozenset[str], int],
) -> bool:
    unknown = [at for at, end in enumerate(pair) if brokers is not None and end not in brokers]
    for at in unknown:
        unknown_broker(between.inside(at), brokers or ())
    if pair[0] == pair[1]:
        between.report("two different brokers", saw=pair[0])
    elif frozenset(pair) in first_at:
        between.report(
            f"one link per pair of brokers (links[{first_at[frozenset(pair)] + 1}] joins "
            "them already)",
            saw=f"another link between {pair[0]} and {pair[1]}",
        )
    elif not unknown:
        return True
    return False


def unknown_broker(place: Place, brokers: Sequence[str]) -> None:
    """Note a name that no broker has."""
    place.report(
        f"one of the brokers {_shown(brokers) or '(there are none)'}",
        fix=meant_name(place.value, brokers),
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def check_paths(brokers: Sequence[str] | None, ends: LinkEnds | None, place: Place) -> None:
    """Check that links join all brokers, and that events have one tree to follow."""
    routing = place.inside("routing")
    if isinstance(routing.value, Mapping):
        _check_routing(brokers, ends, routing)
    if ends is None or not brokers:
        return
    parts = topology.components(brokers, ends.joined)
    if len(parts) > 1 + ends.wrong:
        lone = [name for part in parts[1:] for name in part]
        saw = f"no path from {parts[0][0]} to {_shown(lone)}"
        if ends.wrong:
            firsts = _shown([part[0] for part in parts])
            saw = (
                f"{len(parts)} separate parts (with {firsts}); even with the faulty links "
                "mended some stay apart"
            )
        place.inside("links").report("links that connect all brokers", saw=saw)
    cycle = topology.find_cycle(ends.joined)
    if cycle and routing.value is None:
        place.inside("links").report(
            "a tree",
            saw=f"a cycle through {_shown(cycle)}",
            fix="name the tree that events follow: routing: {root: BROKER} or "
            "{tree: [[a, b], ...]}",
        )


def _check_routing(brokers: Sequence[str] | None, ends: LinkEnds | None, at: Place) -> None:
    fields = {name for name, value in at.value.items() if value is not None}
    roots = at.inside("roots").value if isinstance(at.inside("roots").value, Mapping) else {}
    names = [at.inside("root"), *(at.inside("roots", value) for value in roots)]
    for root in names:
        if brokers is not None and isinstance(root.value, str) and root.value not in brokers:
            unknown_broker(root, brokers)
    has_roots = "roots" in fields and at.inside("roots").value != {}
    if ("by" in fields) != has_roots:
        at.report("'by' and 'roots' together: an attribute, and a root for each of its values")
    if {"tree", "root"} <= fields:
        at.report("either 'root' or 'tree'", saw="both")
    if "by" in fields and not fields & {"root", "tree"}:
        at.report(
            "also 'root': the tree for events that carry none of the values", saw="only 'roots'"
        )
    if not fields & {"by", "roots", "root", "tree"}:
        at.report("'root', 'tree', or 'by' with 'roots'", saw="none of them")
    if brokers and ends is not None and isinstance(at.inside("tree").value, list):
        _check_tree(brokers, ends, at.inside("tree"))


def _check_tree(brokers: Sequence[str], ends: LinkEnds, place: Place) -> None:
    existing = {frozenset(pair) for pair in ends.joined}
    chosen, wrong = [], 0
    for index, value in enumerate(place.value):
        pair = _pair(value)
        if pair is not None and frozenset(pair) in existing:
            chosen.append(pair)
            continue
        wrong += 1
        readable = isinstance(value, list) and len(value) >= 2 and all(map(_is_text, value))
        # A pair that a link with a mistake names is wrong there, not here.
        if readable and "--".join(value) not in ends.names and not ends.nameless:
            place.inside(index).report("one of the links", saw=" -- ".join(value))
    cycle = topology.find_cycle(chosen)
    if cycle:
        place.report("a tree", saw=f"a cycle through {_shown(cycle)}")
    elif len(topology.components(brokers, chosen)) > 1 + wrong:
        place.report(
            "links that connect all brokers", saw=f"{len(chosen)} links that leave some apart"
        )
