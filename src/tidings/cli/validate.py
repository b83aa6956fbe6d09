"""``tidings validate``: do two outcomes agree?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options

DISAGREE = 1


def validate(
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="Result of predict, simulate or characterise: .json file or folder."
        ),
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The result to compare A with.")],
    max_mae: Annotated[
        float | None,
        options.share(
            "Largest acceptable mean absolute difference of on-time shares; 0.02 is two "
            "percentage points."
        ),
    ] = 0.02,
    max_error: Annotated[
        float | None,
        options.share("Largest acceptable difference of any subscriber's on-time share."),
    ] = None,
    min_within_2se: Annotated[
        float | None,
        options.share(
            "Share of subscribers that must agree within two combined standard errors.",
            "--min-within-2se",
        ),
    ] = None,
    min_within_error: Annotated[
        float | None,
        options.share(
            "Share of subscribers that must agree within their standard errors and "
            "stated errors together.",
            "--min-within-error",
        ),
    ] = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> int:
    """Compare two outcomes; exit code 0 if they agree within the limits, 1 if not.

    Example: tidings validate predicted.json measured.json --max-mae 0.02
    """
    from tidings.model.outcome_files import load_outcome
    from tidings.reporting import terminal
    from tidings.validation.comparison import compare, verdict
    from tidings.validation.origins import doubts

    outcomes = [load_outcome(a), load_outcome(b)]
    comparison = compare(*outcomes)
    warnings = doubts(outcomes)
    result = verdict(
        comparison,
        max_mae=max_mae,
        max_error=max_error,
        min_within_2se=min_within_2se,
        min_within_error=min_within_error,
    )
    if json:
        console.show_json(
            {
                **comparison.to_document(),
                "verdict": result.to_document(),
                "warnings": list(warnings),
            }
        )
    else:
        console.show(terminal.comparison_table(comparison, limit=limit))
        for check in result.checks:
            console.show_checked(check.passed, ("agrees", "disagrees"), check.text)
    console.warn(warnings)
    return 0 if result.passed else DISAGREE
