"""The files that pages are made of: templates, styles and scripts inside the package."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import jinja2


@cache
def asset(name: str) -> str:
    """Read the text of one of these files."""
    return (resources.files("tidings.reporting") / "assets" / name).read_text(encoding="utf-8")


# A name with one of these would turn the rest of its sentence round.
_DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def _finalize(value: Any) -> Any:
    return value.translate(_DIRECTIONS) if type(value) is str else value


def fill(template: str, **values: Any) -> str:
    """Fill a template with values; whatever is not marked as markup is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    return environment.get_template(template).render(**values)
