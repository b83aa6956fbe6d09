"""The experiments of the content-timeliness paper: six traffic settings, and imprecise contents.

Random systems are simulated and predicted by every queue model; every subscriber of every run is a
point, predicted against actual. In the exponential setting predictions are made from skewed content
laws too, while the simulation follows the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import typer

from studies.content_timeliness import other_traffic
from studies.content_timeliness.latencies import link_delays
from studies.content_timeliness.random_systems import (
    random_system,
    rate_for_load,
)
from studies.harness import Experiment, Texts, lines
from studies.points import errors, points_of, scatter, side_by_side
from studies.settings.content_timeliness import LOADS, Settings
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.skewness import skewed
from tidings.model.study import Finding, Scatter, Section, Study
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate
from tidings.theory.models import QUEUE_MODELS

WARMUP_S = 100.0  # the busiest broker forgets an empty start within some ten seconds
ALMOST_ALL = 0.95  # what we read "almost all" as
SAME = 1e-9  # two models that "produce the same result"
TEXTS = Texts("content-timeliness")
EXPONENTIAL = ("exponential", "exponential")
POINT_COLUMNS = (
    *("seed", "load", "utilisation", "rate_per_s", "publishing", "matching", "model"),
    "alpha",  # skewness of the content law that the prediction was made from; 1 is the truth
    *("subscriber", "broker", "events", "predicted", "actual", "actual_se"),
)


def run(settings: Settings, progress: Progress) -> Study:
    """Run the experiments, or those of other traffic."""
    if settings.where_it_holds:
        return _other_traffic(settings, progress)
    delays, note = link_delays(settings.latencies)
    return study(settings, simulate_all(settings, progress, delays), note)


def _other_traffic(settings: Settings, progress: Progress) -> Study:
    for name in ("load", "latencies"):
        if getattr(settings, name) is not None:
            raise typer.BadParameter(f"--{name} does not go with --where-it-holds")
    first = settings.seed or other_traffic.SEEDS[0]
    effort = other_traffic.Effort(
        seeds=tuple(range(first, first + (settings.systems or len(other_traffic.SEEDS)))),
        replications=settings.seeds,
        duration_s=settings.duration_s,
    )
    return other_traffic.study(TEXTS, other_traffic.simulate_all(effort, progress), effort)


def simulate_all(settings: Settings, progress: Progress, delays: Any) -> pd.DataFrame:
    """Simulate and predict every run: a point for each subscriber, model and skewness."""
    parts = []
    for place, (seed, load, publishing, matching) in enumerate(settings.runs, start=1):
        progress(
            f"run {place} of {len(settings.runs)}: system {seed}, {load} load, {publishing} "
            f"publishing, {matching} matching"
        )
        where = {
            "seed": seed,
            "load": load,
            "utilisation": LOADS[load],
            "rate_per_s": rate_for_load(seed, LOADS[load], delays),
            "publishing": publishing,
            "matching": matching,
        }
        parts += [each.assign(**where) for each in _points_of_run(settings, where, delays)]
    return pd.concat(parts, ignore_index=True)[list(POINT_COLUMNS)]


def _points_of_run(
    settings: Settings, where: Mapping[str, Any], delays: Any
) -> Iterator[pd.DataFrame]:
    laws = {name: where[name] for name in ("publishing", "matching", "rate_per_s")}
    system = random_system(where["seed"], **laws, delays=delays)
    plan = settings.plan
    actual = simulate(
        system,
        seed=where["seed"],
        replications=plan["replications"],
        duration_s=plan["duration_s"],
        warmup_s=WARMUP_S,
    )
    exponential = (where["publishing"], where["matching"]) == EXPONENTIAL
    for alpha in sorted({1.0, *settings.alphas}) if exponential else (1.0,):
        known = skewed(system, alpha)
        for model in settings.models:
            outcome = predict(known, model=model, delays=False, causes=False, by="theory")
            yield points_of(outcome, actual).assign(model=model, alpha=alpha)


def by_setting(points: pd.DataFrame) -> pd.DataFrame:
    """Compute errors by load, setting and model, from predictions that knew the contents."""
    return errors(points[points["alpha"] == 1.0], ("load", "publishing", "matching", "model"))


def by_skewness(points: pd.DataFrame) -> pd.DataFrame:
    """Compute errors by load, skewness α and model, where everything is exponential."""
    exponential = (points["publishing"] == "exponential") & (points["matching"] == "exponential")
    return errors(points[exponential], ("load", "alpha", "model"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The runs of one load: points, errors by setting, errors by skewness."""

    points: pd.DataFrame
    by_setting: pd.DataFrame
    by_skewness: pd.DataFrame

    def of(self, model: str, measure: str = "mean_absolute") -> dict[tuple[str, str], float]:
        """Find a measure of one model's errors, by (publishing, matching)."""
        rows = self.by_setting[self.by_setting["model"] == model]
        keys = zip(rows["publishing"], rows["matching"], strict=True)
        return dict(zip(keys, rows[measure], strict=True))


# Whether a claim holds, and what was measured; None where the runs cannot tell.
Answer = tuple[bool, dict[str, object]] | None


def _best_where_exponential(evidence: Evidence) -> Answer:
    others = evidence.of("mm1")
    there = others.pop(EXPONENTIAL, None)
    if there is None or not others:
        return None
    nearest = min(others, key=lambda key: others[key])
    least = others[nearest]
    return there < least, {"there": there, "elsewhere": least, "nearest": "/".join(nearest)}


def _a_lower_bound(evidence: Evidence) -> Answer:
    shares = evidence.of("mm1", "at_most_actual")
    shares.pop(EXPONENTIAL, None)
    if not shares:
        return None
    least = min(shares.values())
    return least >= ALMOST_ALL, {"least": least, "most": max(shares.values())}


def _burstiness_helps(evidence: Evidence) -> Answer:
    simple, improved = evidence.of("mm1"), evidence.of("gg1")
    settings = [key for key in improved if key in simple and key != EXPONENTIAL]
    if not settings:
        return None
    worse = [
        f"{'/'.join(key)} {improved[key]:.4f} against {simple[key]:.4f}"
        for key in settings
        if improved[key] >= simple[key]
    ]
    return not worse, {
        "better": len(settings) - len(worse),
        "settings": len(settings),
        "worse": f"; not in {', '.join(worse)}" if worse else "",
    }


def _same_where_exponential(evidence: Evidence) -> Answer:
    rows = evidence.points[evidence.points["alpha"] == 1.0].query(
        "publishing == 'exponential' and matching == 'exponential'"
    )
    values = rows.pivot(index=["seed", "subscriber"], columns="model", values="predicted")
    if not {"mm1", "gg1"} <= set(values.columns):
        return None
    largest = float((values["mm1"] - values["gg1"]).abs().max())
    return largest <= SAME, {"largest": largest}


def _too_flat_is_worse(evidence: Evidence) -> Answer:
    series = {
        model: dict(zip(each["alpha"], each["mean_absolute"], strict=True))
        for model, each in evidence.by_skewness.groupby("model", sort=False)
        if model in ("mm1", "law")  # gg1 is the same as mm1 here
    }
    paper = series.get("mm1", {})
    if not {0.5, 2.0} <= set(paper):
        return None
    parts = [
        f"{model}: " + ", ".join(f"{value:.4f} at α = {alpha:g}" for alpha, value in each.items())
        for model, each in series.items()
    ]
    return paper[0.5] > paper[2.0], {"series": "; ".join(parts)}


CLAIMS: Mapping[str, Callable[[Evidence], Answer]] = {
    "best where exponential": _best_where_exponential,
    "lower bound": _a_lower_bound,
    "burstiness helps": _burstiness_helps,
    "same where exponential": _same_where_exponential,
    "too flat is worse": _too_flat_is_worse,
}


def findings(points: pd.DataFrame) -> Iterator[Finding]:
    """Answer every claim under every load, as far as the runs can tell."""
    for load, own in points.groupby("load", sort=False):
        evidence = Evidence(points=own, by_setting=by_setting(own), by_skewness=by_skewness(own))
        for key, ask in CLAIMS.items():
            answer = ask(evidence)
            if answer is not None:
                holds, measured = answer
                yield TEXTS.claim(key, holds, load=load, **measured)


def study(settings: Settings, points: pd.DataFrame, *notes: str) -> Study:
    """Show the points: errors side by side, scatter plots, claims."""
    plan = settings.plan
    return TEXTS.study(
        summary=f"{plan['systems']} random {'system' if plan['systems'] == 1 else 'systems'}, each "
        f"simulated {plan['replications']} times for {plan['duration_s']:g} s in every setting and "
        f"under every load; {len(points):,} points. Errors are of on-time shares: 0.01 is one "
        "percentage point.",
        findings=findings(points),
        sections=(_models(settings.models), *_loads(points), *_skewness(by_skewness(points))),
        tables={
            "points": points,
            "by_setting": by_setting(points),
            "by_skewness": by_skewness(points),
        },
        plan=plain(plan),
        notes=notes,
    )


def _models(models: tuple[str, ...]) -> Section:
    rows = [{"model": name, "assumes": QUEUE_MODELS[name]} for name in models]
    return TEXTS.section("models", TEXTS.grid("models", rows))


def _loads(points: pd.DataFrame) -> Iterator[Section]:
    for load, table in by_setting(points).groupby("load", sort=False):
        busy = f"{load} load, busiest broker at {100 * LOADS[str(load)]:.0f} %"
        size, side = (
            "{mean_absolute:.4f} ({maximum:.3f})",
            "{mean_signed:+.4f} ({at_most_actual:.2f})",
        )
        yield TEXTS.section(
            "load",
            TEXTS.grid("size", *side_by_side(table, size), busy=busy),
            TEXTS.grid("side", *side_by_side(table, side), load=load),
            *_scatters(points[(points["load"] == load) & (points["alpha"] == 1.0)]),
            busy=f"{busy[0].upper()}{busy[1:]}",
        )


def _scatters(points: pd.DataFrame) -> Iterator[Scatter]:
    models = list(dict.fromkeys(points["model"]))
    for (model, *setting), group in points.groupby(["model", "publishing", "matching"], sort=False):
        yield scatter(f"{model}: {' / '.join(setting)}", group, models.index(model))


def _skewness(table: pd.DataFrame) -> Iterator[Section]:
    if table["alpha"].nunique() > 1:
        plots = (
            TEXTS.curves("skewness", lines(group, "model", "alpha", "mean_absolute"), load=load)
            for load, group in table.groupby("load", sort=False)
        )
        shown = TEXTS.grid("skewness", *side_by_side(table, "{mean_absolute:.4f}"))
        yield TEXTS.section("skewness", shown, *plots)


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
