"""``tidings predict``: which share arrives in time, by theory or simulation, within an error."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.outcomes import check_output, present
from tidings.prediction.choices import SECONDS, WITHIN
from tidings.theory.models import FAULT_MODELS, QUEUE_MODELS


def predict(
    system: options.SystemFile,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="|".join(QUEUE_MODELS),
            help="Queue model of theory. gg1 and mm1 are simpler, for comparison: theory then "
            "answers alone.",
        ),
    ] = next(iter(QUEUE_MODELS)),
    faults: Annotated[
        str,
        typer.Option(
            "--faults",
            metavar="|".join(FAULT_MODELS),
            help="Failure model of theory. With paper, the published formulas, theory answers "
            "alone.",
        ),
    ] = next(iter(FAULT_MODELS)),
    within: options.Within = str(WITHIN),
    by: options.By = None,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    pairs: options.Pairs = False,
    error_bars: Annotated[
        bool | None,
        typer.Option(
            "--error-bars/--no-error-bars",
            help="Carry standard errors of the system's parameters over to the result; by "
            "default where the system has them and it is quick.",
        ),
    ] = None,
    contents_skew: Annotated[
        float,
        typer.Option(
            "--contents-skew",
            metavar="ALPHA",
            help="Raise probabilities of contents to this power first, to see what wrong ones "
            "would cost: below 1 makes them more equal, above 1 less.",
        ),
    ] = 1.0,
    interval: Annotated[
        float | None,
        options.share(
            "Also show the interval that contains the true on-time share with this "
            "probability, such as 0.9, from standard errors of parameters and the error "
            "of each row.",
            "--interval",
        ),
    ] = None,
    model_error: Annotated[
        float | None,
        options.share(
            "Standard error of the model to use for --interval, instead of the error of each row.",
            "--model-error",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = None,
    limit: options.Limit = 10,
) -> None:
    """Predict which share of its events each subscriber gets on time, and why others are not.

    Each row shows its error, and which engine answered: theory or simulation.

    Example: tidings predict city.yaml --within 0.001, or with error bars end to end:
    tidings predict fitted.yaml --interval 0.9
    """
    from tidings.model import reading
    from tidings.model.skewness import skewed

    if model not in QUEUE_MODELS:
        raise typer.BadParameter(f"'{model}' is not one of {', '.join(QUEUE_MODELS)}")
    if faults not in FAULT_MODELS:
        raise typer.BadParameter(f"'{faults}' is not one of {', '.join(FAULT_MODELS)}")
    believed_system = skewed(reading.load(system), contents_skew)
    check_output(output)
    # Slow to import: a mistake in the file is reported before.
    from tidings.model.causes import total_costs
    from tidings.planning.budget import Budget, advise
    from tidings.planning.change_search import missed
    from tidings.prediction.predict import PredictOptions
    from tidings.prediction.predict import predict as predict_outcome
    from tidings.reporting.headline import NEGLIGIBLE, answers
    from tidings.reporting.terminal import interval_table
    from tidings.validation.intervals import intervals

    asked = PredictOptions(
        within=within,
        by=by,
        seconds=seconds,
        seed=seed,
        model=model,
        faults=faults,
        pairs=pairs,
        error_bars=True if error_bars is None and interval is not None else error_bars,
    )
    with console.progress("predicting") as step:
        outcome = predict_outcome(believed_system, asked, progress=step)
        budget = Budget(outcome=outcome, totals=total_costs(outcome))
        late = 1.0 - outcome.on_time > NEGLIGIBLE
        if not json and (late or missed(believed_system, outcome)):
            budget = advise(believed_system, outcome, step)
    shares = None
    if interval is not None:
        shares = intervals(outcome, level=interval, model_error=model_error)
    present(
        outcome, json=json, output=output, limit=limit, intervals=shares, answers=answers(budget)
    )
    if shares is not None and interval is not None and not json:
        console.show(interval_table(shares, interval, limit))
