"""The files that pages are made of: templates, styles and scripts inside the package."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import jinja2


@cache
def asset(name: str) -> str:
    """The text of one of these files."""
    return (resources.files("tidings.reporting") / "assets" / name).read_text(encoding="utf-8")


def fill(template: str, **values: Any) -> str:
    """A template with its values; whatever is not marked as markup is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
