"""``tidings predict``: what the theory says about a system."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.outcomes import check_output, present
from tidings.model import reading
from tidings.model.skewness import skewed
from tidings.reporting.terminal import interval_table
from tidings.theory.faults.modelling import FAULT_MODELS
from tidings.theory.predicting import predict as predict_outcome
from tidings.theory.queue_models import QUEUE_MODELS
from tidings.validation.intervals import intervals

NOT_COVERED = (
    "how far this prediction may be off is not known (its warnings and what it assumes say why); "
    "the intervals do not cover that"
)


def predict(
    system: options.SystemFile,
    model: Annotated[
        str,
        typer.Option("--model", metavar="|".join(QUEUE_MODELS), help="How brokers queue."),
    ] = next(iter(QUEUE_MODELS)),
    faults: Annotated[
        str,
        typer.Option("--faults", metavar="|".join(FAULT_MODELS), help="How failures count."),
    ] = next(iter(FAULT_MODELS)),
    pairs: options.Pairs = False,
    error_bars: Annotated[
        bool | None,
        typer.Option(
            "--error-bars/--no-error-bars",
            help="Turn standard errors of the system's parameters into those of the result; "
            "unasked where it has them and that is quick.",
        ),
    ] = None,
    contents_skew: Annotated[
        float,
        typer.Option(
            "--contents-skew",
            metavar="ALPHA",
            help="Believe in contents' probabilities to this power: below 1 more alike than they "
            "are, above 1 less.",
        ),
    ] = 1.0,
    interval: Annotated[
        float | None,
        options.share(
            "Say between which shares the true one lies with this probability, such as 0.9: "
            "standard errors of parameters and the model's own error count.",
            "--interval",
        ),
    ] = None,
    model_error: Annotated[
        float | None,
        options.share(
            "The model's own error, for --interval; not said: what the prediction says of it.",
            "--model-error",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = None,
    limit: options.Limit = 10,
) -> None:
    """Predict which share of its events each subscriber gets in time, and why not the rest.

    Example: [bold]tidings predict city.yaml --output predicted.json[/], or with error bars end to
    end: [bold]tidings predict fitted.yaml --interval 0.9[/]
    """
    if model not in QUEUE_MODELS:
        raise typer.BadParameter(f"'{model}' is not one of {', '.join(QUEUE_MODELS)}")
    if faults not in FAULT_MODELS:
        raise typer.BadParameter(f"'{faults}' is not one of {', '.join(FAULT_MODELS)}")
    check_output(output)
    found = skewed(reading.load(system), contents_skew)
    with console.progress("predicting") as step:
        outcome = predict_outcome(
            found,
            model=model,
            faults=faults,
            pairs=pairs,
            error_bars=True if error_bars is None and interval is not None else error_bars,
            progress=step,
        )
    shares = None
    if interval is not None:
        shares = intervals(outcome, level=interval, model_error=model_error)
    present(outcome, json=json, output=output, limit=limit, intervals=shares)
    if shares is not None and interval is not None and not json:
        console.show(interval_table(shares, interval, limit))
    if shares is not None and shares["model_error"].isna().any():
        console.warn((NOT_COVERED,))
