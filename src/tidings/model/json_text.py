"""JSON texts to plain values and back: what is nested too deeply is refused like any bad text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MOST_DEPTH = 60  # of lists and mappings in one another; honest documents have far fewer
TOO_DEEP = f"lists or mappings nested more than {MOST_DEPTH} deep"


def parse(text: str | bytes, **hooks: Any) -> Any:
    """Parse a JSON text into its value; raise ValueError if it is none, or nested too deeply.

    >>> parse('{"topic": ["stock"]}')
    {'topic': ['stock']}
    """
    try:
        value = json.loads(text, **hooks)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    return _checked(value)


def parse_one(text: str, at: int) -> tuple[Any, int]:
    """Parse the JSON text that begins at ``at``, strict about numbers; give value and end.

    >>> parse_one('{"a": 1} {"b": 2}', 0)
    ({'a': 1}, 8)
    """
    try:
        value, end = _STRICT.raw_decode(text, at)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    return _checked(value), end


def _checked(value: Any) -> Any:
    level = _nested([value])
    for _ in range(MOST_DEPTH):
        level = [inner for each in level for inner in _nested(each)]
    if level:
        raise ValueError(TOO_DEEP)
    return value


def refuse_constant(constant: str) -> Any:
    """Refuse NaN and infinity, which Python reads though JSON has no such numbers."""
    raise ValueError(f"{constant} is no number in JSON")


_STRICT = json.JSONDecoder(parse_constant=refuse_constant)


def plain(value: Any) -> Any:
    """Convert a value to plain JSON: NaN and infinity become null, NumPy numbers plain ones."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _nested(values: dict[str, Any] | list[Any]) -> list[Any]:
    each = values.values() if isinstance(values, dict) else values
    return [value for value in each if isinstance(value, dict | list)]
