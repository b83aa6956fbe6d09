"""One self-contained HTML page: who gets late events, and why.

Everything is inside the file (data, styles, scripts), nothing is fetched, and its content security
policy forbids it: only the scripts written here may run, whatever the names in the data are.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tidings.errors import TidingsError
from tidings.model.causes import causes_of, total_costs
from tidings.model.outcome import SOURCES, Outcome
from tidings.model.study import Section
from tidings.model.system import System
from tidings.model.writing import check_file, write_file
from tidings.reporting import headline
from tidings.reporting.facts import facts
from tidings.reporting.page_data import page_data, to_script
from tidings.reporting.reasons import Reasons, explain
from tidings.reporting.study_page import section_parts
from tidings.reporting.templates import asset, fill

if TYPE_CHECKING:
    from tidings.planning.budget import Budget

# In the order in which they need each other.
_SCRIPTS = (
    *("basics", "state", "csv", "table", "axes", "charts", "menu", "people"),
    *("map_places", "topology", "places", "subscriber", "fates", "page"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a page tells of: a system and one to three outcomes, by their source.

    ``parameters`` has the columns path, estimate, standard_error, count, family, goodness and unit,
    and may have ``truth``.
    """

    title: str
    system: System
    outcomes: Mapping[str, Outcome]
    parameters: pd.DataFrame | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    figures: Sequence[headline.KeyFigure] = ()  # key figures beside those of the outcomes
    sections: Sequence[Section] = ()  # what else there is to show: budgets, what-ifs, plans
    budget: Budget | None = None  # what causes cost, and what helps

    def __post_init__(self) -> None:
        unknown = [source for source in self.outcomes if source not in SOURCES]
        if unknown or not self.outcomes:
            raise ValueError(f"outcomes are {list(self.outcomes)}; wants some of {SOURCES}")


def render_page(report: Report) -> str:
    """Render the page as HTML text."""
    outcomes = {source: report.outcomes[source] for source in SOURCES if source in report.outcomes}
    main = outcomes[headline.main_source(outcomes)]
    reasons, problem = _reasons(report.system, main)
    causes = next((each for each in outcomes.values() if len(each.causes)), None)
    if report.budget is not None:
        causes = report.budget.outcome
    if causes is not None:
        reasons = replace(reasons, causes=causes_of(causes), totals=total_costs(causes))
    data = page_data(report.system, outcomes, reasons, report.parameters)
    script = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{script}\n}})();'
    return fill(
        "page.html.jinja",
        title=report.title,
        system=report.system,
        outcomes=outcomes,
        main=main.source,
        lead=headline.lead(main),
        sentences=headline.sentences(outcomes, reasons, report.budget),
        figures=[*headline.figures(outcomes), *report.figures],
        warnings=[f"{each.source}: {text}" for each in outcomes.values() for text in each.warnings],
        notes=[*report.notes, *problem, *data.omissions],
        provenance={source: facts(each.provenance) for source, each in outcomes.items()},
        has_parameters=report.parameters is not None and len(report.parameters) > 0,
        data=to_script(data.document),
        sections=[section_parts(each) for each in report.sections],
        style=asset("page.css") + (asset("study.css") if report.sections else ""),
        script=script,
        script_hash=script_hash(script),
    )


def write_page(report: Report, path: str | Path) -> Path:
    """Write the page to a file, whole or not at all; answers where it is."""
    check_file(path)
    # A lone half of a surrogate pair may come in with a name; UTF-8 has no place for it.
    write_file(path, render_page(report).encode("utf-8", errors="replace"))
    return Path(path)


def _reasons(system: System, main: Outcome) -> tuple[Reasons, list[str]]:
    """Explain why events are late.

    A system whose paths cannot be computed still gets a page, with a note instead of reasons.
    """
    try:
        return explain(system, main), []
    except TidingsError as error:
        return Reasons(), [
            "Reasons for late and lost events are not shown, because the paths of events "
            f"could not be computed: {error}"
        ]


def script_hash(script: str) -> str:
    """Give the source of a content security policy that allows this one script."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
