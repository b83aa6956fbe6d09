"""All systems of the catalogue, by name, and how to choose some of them."""

from __future__ import annotations

from collections.abc import Sequence

from systems import churning, failing, mobile, queues, studies
from systems.describing import Case

_ALL = [each for module in (queues, failing, mobile, churning, studies) for each in module.cases()]
CATALOGUE = {each.name: each for each in _ALL}
if len(CATALOGUE) < len(_ALL):
    raise ValueError("two systems of the catalogue have one name")


def chosen(words: Sequence[str] = ()) -> list[Case]:
    """The cases of which the name has, or the kind is, one of these words; all without any."""
    if not words:
        return list(CATALOGUE.values())
    found = [
        each
        for each in CATALOGUE.values()
        if any(word == each.kind or word in each.name for word in words)
    ]
    if not found:
        kinds = ", ".join(sorted({each.kind for each in CATALOGUE.values()}))
        raise SystemExit(
            f"no system has {' or '.join(words)} in its name; or give one of the kinds {kinds}"
        )
    return found
