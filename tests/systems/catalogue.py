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
    """The cases of these kinds, or with these words in their names; all without any word."""
    kinds = {each.kind for each in CATALOGUE.values()}

    def fits(each: Case) -> bool:
        return any(word == each.kind if word in kinds else word in each.name for word in words)

    found = [each for each in CATALOGUE.values() if not words or fits(each)]
    if not found:
        raise SystemExit(
            f"no system has {' or '.join(words)} in its name; wants a part of a name, or one of "
            f"the kinds {', '.join(sorted(kinds))}"
        )
    return found
