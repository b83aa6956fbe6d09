"""The page of a watched system: alive, or saved as one file that needs nothing else.

Both are the same template, styles and scripts as the offline report's where they show the same.
The page alone carries its script, and the policy allows that one script by its hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tidings.reporting.page import script_hash
from tidings.reporting.page_data import to_script
from tidings.reporting.templates import asset, fill

# In the order in which they need each other.
_SCRIPTS = (
    *("uplot", "basics", "state", "csv", "table", "axes", "menu", "live_data"),
    *("map_places", "topology", "live_series", "live"),
)
_STYLES = ("page.css", "uplot.css", "live.css")


def policy(*, live: bool) -> str:
    """Give the content security policy: only this script runs, nothing is fetched elsewhere."""
    own = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src '{script_hash(_script())}'; "
        f"{own}img-src data:; base-uri 'none'; form-action 'none'"
    )


def render(view: Mapping[str, Any], past: Mapping[str, Any], *, title: str, live: bool) -> str:
    """Write the page of a view and of everybody's past; alive, it asks the server for more."""
    return fill(
        "live.html.jinja",
        title=title,
        live=live,
        policy=policy(live=live),
        lead=view["lead"],
        sentences=view["sentences"],
        figures=view["figures"],
        warnings=view["warnings"],
        data=to_script({"live": live, "view": view, "past": past}),
        style="\n".join(map(asset, _STYLES)),
        script=_script(),
    )


@cache
def _script() -> str:
    script = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{script}\n}})();'
