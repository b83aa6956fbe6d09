"""``tidings predict``: which share arrives in time, by theory or simulation, within an error."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.outcomes import check_output, present
from tidings.prediction.choices import FAULT_MODELS, QUEUE_MODELS, SECONDS, WITHIN


def predict(
    system: options.SystemFile,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="|".join(QUEUE_MODELS),
            help="How theory sees queues; another than the first is answered by theory alone.",
        ),
    ] = next(iter(QUEUE_MODELS)),
    faults: Annotated[
        str,
        typer.Option(
            "--faults",
            metavar="|".join(FAULT_MODELS),
            help="How theory sees failures; another than the first is answered by theory alone.",
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
            "standard errors of parameters and the error of each row count.",
            "--interval",
        ),
    ] = None,
    model_error: Annotated[
        float | None,
        options.share(
            "Model error used by --interval, as a standard error; default: that of each row.",
            "--model-error",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = None,
    limit: options.Limit = 10,
) -> None:
    """Predict which share of its events each subscriber gets in time, and why not the rest.

    Each row says how far it can be off and by which engine it was answered.

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
    from tidings.prediction.predict import PredictOptions
    from tidings.prediction.predict import predict as predict_outcome
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
    shares = None
    if interval is not None:
        shares = intervals(outcome, level=interval, model_error=model_error)
    present(outcome, json=json, output=output, limit=limit, intervals=shares)
    if shares is not None and interval is not None and not json:
        console.show(interval_table(shares, interval, limit))
