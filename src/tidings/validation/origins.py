"""Whether outcomes that are set side by side speak of the same system and the same subscribers."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.model.outcome import Outcome

_NAMED = 5


def doubts(outcomes: Sequence[Outcome], system: str | None = None) -> tuple[str, ...]:
    """List what makes a comparison doubtful, as sentences; ``system`` is the fingerprint to go by.

    A measured outcome has no fingerprint (it is of the traces), and comparing a fitted system with
    the true one is legitimate: so these are warnings.
    """
    said = _of_systems(outcomes, system)
    for other in outcomes[1:]:
        said += _of_subscribers(outcomes[0], other)
    return tuple(said)


def _of_systems(outcomes: Sequence[Outcome], system: str | None) -> list[str]:
    known = [(f"the {each.source} outcome", each.provenance.get("system")) for each in outcomes]
    named = [("the system given", system), *known]
    prints = {name: str(each) for name, each in named if each}
    if len(set(prints.values())) <= 1:
        return []
    listed = ", ".join(f"{name} {each}" for name, each in prints.items())
    return [
        "these results belong to different systems (their fingerprints differ): "
        f"{listed}; differences between them may come from that alone"
    ]


def _of_subscribers(a: Outcome, b: Outcome) -> list[str]:
    said = []
    for one, other in ((a, b), (b, a)):
        known = set(other.subscribers["subscriber"])
        only = [name for name in one.subscribers["subscriber"] if name not in known]
        if only:
            listed = ", ".join(only[:_NAMED])
            more = f" and {len(only) - _NAMED} more" if len(only) > _NAMED else ""
            said.append(
                f"subscribers of the {one.source} outcome that are missing from the "
                f"{other.source} one: {listed}{more}"
            )
    return said
