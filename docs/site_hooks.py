"""What mkdocs does with each page of the site beside its plugins (see mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any


def on_page_content(html: str, **_: Any) -> str:
    """Leave out the roles of docstrings, as in ``:class:`System```, which are for other tools."""
    return re.sub(r":(?:class|func|meth|mod|math):(?=<code>)", "", html)
