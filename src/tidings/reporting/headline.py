"""What the page says first: who gets late events and why, in a few sentences with numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tidings.model.causes import ARROW, Cost
from tidings.model.outcome import CAUSES, LOSSES, SOURCES, Outcome
from tidings.reporting.reasons import DelayPart, Explanation, Reasons
from tidings.reporting.wording import gives, percent, plural, rate, seconds, short, whole_percent
from tidings.validation.comparison import Comparison, compare

if TYPE_CHECKING:
    from tidings.planning.budget import Budget
    from tidings.planning.change_search import Aim, Remedy
    from tidings.planning.evidence import TargetStanding

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
MOST_BELOW = 0.05  # a threshold is worth naming when this share of the subscribers is below it
LINK_CAUSES = ("link", "unexplained")  # causes that the known losses of the links may account for
NEGLIGIBLE = 0.005  # who misses less than this needs no reason
_NOUNS = {"predicted": "prediction", "simulated": "simulation", "measured": "measurement"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One answer: the question it belongs to, and the words."""

    question: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """One key figure: a label, the number, and what is to be said beside it."""

    label: str
    value: str
    note: str = ""


def main_source(outcomes: Mapping[str, Outcome]) -> str:
    """Choose the outcome that the page speaks of: measured, else simulated, else predicted."""
    return next(source for source in reversed(SOURCES) if source in outcomes)


def lead(outcome: Outcome) -> str:
    """Write the first sentence of the page: which share of all wanted events arrives in time."""
    if math.isnan(outcome.on_time):
        return "No published event matches any subscription."
    late, lost = _late_and_lost(outcome)
    return (
        f"{percent(outcome.on_time)} of the wanted events arrive on time; {percent(late)} "
        f"arrive late and {percent(lost)} never."
    )


def sentences(
    outcomes: Mapping[str, Outcome],
    reasons: Reasons,
    budget: Budget | None = None,
) -> list[Sentence]:
    """Say who gets late events, why, what to do, and how sure all this is."""
    outcome = outcomes[main_source(outcomes)]
    known = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    if not len(known):
        return []
    _, lost = _late_and_lost(outcome)
    given = {"Why": why(reasons.totals)} if budget is None else answers(budget)
    texts = {
        "Who": _who(known, reasons),
        "Why": given.pop("Why", ""),
        "Why late": "" if reasons.totals else _why_late(outcome, reasons),
        "Why lost": _why_lost(outcome, reasons) if lost > 0 and not reasons.totals else "",
        **given,
        "How sure": " ".join(_how_sure(each) for each in comparisons(outcomes)),
    }
    return [Sentence(question=q, text=text) for q, text in texts.items() if text]


def answers(budget: Budget) -> dict[str, str]:
    """Say why events are late, what to do, and how far targets are, each where there is any."""
    texts = {
        "Why": why(budget.totals),
        "Do": do(budget.remedies),
        "Targets": targets(budget.aim, budget.best),
    }
    return {question: text for question, text in texts.items() if text}


def figures(outcomes: Mapping[str, Outcome]) -> list[KeyFigure]:
    """List the key figures of the page, shares in percent."""
    main = main_source(outcomes)
    outcome = outcomes[main]
    late, lost = _late_and_lost(outcome)
    known = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    shown = [
        KeyFigure(
            label="on time", value=percent(outcome.on_time), note=f"of wanted events, {main}"
        ),
        KeyFigure(label="late", value=percent(late), note="arrived after their lifetime"),
        KeyFigure(label="lost", value=percent(lost), note="never arrived"),
    ]
    if len(known):
        limit = threshold(known)
        below = _count(known[known["on_time"] < limit])
        total = _count(outcome.subscribers)
        note = f"of {plural(total, 'subscriber')} get less than {percent_limit(limit)} on time"
        shown.append(KeyFigure(label="badly served", value=f"{below:,}", note=note))
    busy = outcome.brokers[outcome.brokers["utilisation"].notna()]
    if len(busy):
        most = busy.loc[busy["utilisation"].round(9).idxmax()]
        value = whole_percent(float(most["utilisation"]))
        shown.append(
            KeyFigure(label="busiest broker", value=value, note=short(str(most["broker"])))
        )
    for each in comparisons(outcomes):
        error = each.summary.mean_absolute
        noun = _NOUNS[each.source_a]
        note = f"mean absolute, against {each.source_b}"
        shown.append(KeyFigure(label=f"{noun} error", value=f"{100 * error:.2g} %", note=note))
    return shown


def comparisons(outcomes: Mapping[str, Outcome]) -> list[Comparison]:
    """Compare every other outcome with the main one."""
    main = main_source(outcomes)
    others = [source for source in SOURCES if source in outcomes and source != main]
    return [compare(outcomes[source], outcomes[main]) for source in others]


def threshold(known: pd.DataFrame) -> float:
    """Find the lowest round on-time share that a sizeable part of subscribers does not reach."""
    weights = known["count"].fillna(1.0)
    total = float(weights.sum())
    for limit in THRESHOLDS:
        if float(weights[known["on_time"] < limit].sum()) >= MOST_BELOW * total:
            return limit
    return THRESHOLDS[-1]


def percent_limit(limit: float) -> str:
    """Write a round limit in percent.

    >>> percent_limit(0.7)
    '70 %'
    """
    return f"{100 * limit:.3g} %"


def why(totals: Sequence[Cost]) -> str:
    """Write what the dearest causes cost all events."""
    if not totals:
        return ""
    (first, *gain), *others = totals[:3]
    text = (
        f"Mainly {short(first.words, 80)}: without that {percent(*gain)} more of all events would "
        "be on time"
    )
    rest = ", ".join(
        f"without {short(cause.words, 80)} {percent(*gain)}" for cause, *gain in others
    )
    return f"{text}; {rest}." if rest else f"{text}."


def do(remedies: Sequence[Remedy]) -> str:
    """Say which single changes help most, with what they give in percentage points."""
    best = [each for each in remedies if each.gain > 0.0][:2]
    return "; ".join(gives(each.to_document()) for each in best) + "." if best else ""


def targets(aim: Aim | None, best: Remedy | None = None) -> str:
    """Say how far a system is from its own targets, and the least single change that meets them.

    ``best`` is the change that was named before; it is not told again.
    """
    if aim is None:
        return ""
    return f"{_standing(aim.standing)} {_least(aim, best)}"


def _standing(stands: TargetStanding) -> str:
    text = (
        f"{percent(stands.satisfied)} of the subscribers with a target reach it ({stands.source})"
    )
    if not stands.worst:
        return f"{text}."
    error = "" if math.isnan(stands.error) else f" (± {100 * stands.error:.2g})"
    where = f"{100 * abs(stands.margin):.3g}{error} percentage points"
    side = "above" if stands.margin >= 0 else "below"
    return (
        f"{text}; the {'closest' if stands.margin >= 0 else 'worst'}, {short(stands.worst)}, "
        + (f"lies {where} {side} its own.")
    )


def _least(aim: Aim, best: Remedy | None) -> str:
    least = aim.least
    if least is None:
        return "No single change that was tried meets all targets."
    which = "The least change" if aim.is_smallest else "A change (smaller ones were not tried)"
    sure = {"meets": "meets them all", "undecided": "meets them all, within its error"}
    said = sure.get(least.verdict, "comes nearest to meeting them all")
    same = best is not None and least.changes == best.changes
    return f"{which} that {said}: {'the same' if same else gives(least.to_document())}."


def reason(
    row: Mapping[str, float], explanation: Explanation | None, causes: Sequence[Cost] = ()
) -> str:
    """Explain in a few words why a subscriber misses events; empty when it misses none."""
    missed = 1.0 - row["on_time"]
    if math.isnan(missed) or missed < NEGLIGIBLE:
        return ""
    if causes:
        first, *gain = causes[0]
        return f"{short(first.words, 80)} ({percent(*gain)})"
    losses = {cause: row[f"lost_{cause}"] for cause in CAUSES}
    cause = max(losses, key=lambda each: losses[each])
    lost = sum(value for value in losses.values() if not math.isnan(value))
    if lost > missed / 2:
        return _lost_words(cause, losses[cause], explanation)
    if explanation is None or not explanation.parts:
        return "gets events late"
    return _part_words(explanation.parts[0], explanation)


def _lost_words(cause: str, share: float, explanation: Explanation | None) -> str:
    if cause in LINK_CAUSES and explanation is not None and explanation.losses:
        place, lost = explanation.losses[0]
        if lost > 0:
            return f"loses {percent(lost)} of its events on {short(place, 64)}"
    return f"loses {percent(share)} ({CAUSES[cause]})"


def _part_words(part: DelayPart, explanation: Explanation) -> str:
    total = sum(each.mean_s for each in explanation.parts)
    verb = {"wait": "waits at", "service": "is served at", "link": "travels"}[part.kind]
    place = short(part.place, 64)
    if not math.isfinite(part.mean_s):
        return f"{verb} {place} forever"
    return f"{verb} {place} ({whole_percent(part.mean_s / total)} of its delay)"


def _who(known: pd.DataFrame, reasons: Reasons) -> str:
    limit, total = threshold(known), _count(known)
    below = _count(known[known["on_time"] < limit])
    worst = known.loc[known["on_time"].round(9).idxmin()]
    name = str(worst["subscriber"])
    who = short(name) + (f" at broker {short(str(worst['broker']))}" if worst["broker"] else "")
    first = (
        f"{below:,} of {plural(total, 'subscriber')} get less than {percent_limit(limit)} on time"
        if below
        else f"All {plural(total, 'subscriber')} get at least {percent_limit(limit)} on time"
    )
    text = f"{first}; the worst, {who}, gets {percent(float(worst['on_time']))}"
    explanation, causes = reasons.subscribers.get(name), reasons.causes.get(name, ())
    why = reason(worst, explanation, causes)
    if not why:
        return f"{text}."
    because = "mainly because of " if causes else "it "
    return f"{text}: {because}{why}{_against_deadline(worst, explanation)}."


def _against_deadline(row: Mapping[str, float], explanation: Explanation | None) -> str:
    limits = explanation.deadlines if explanation is not None else ()
    mean_s = row["delay_mean_s"]
    if not limits or math.isnan(mean_s):
        return ""
    first, last = seconds(limits[0].lifetime_s), seconds(limits[-1].lifetime_s)
    limit = f"lifetimes of {first} to {last}" if len(limits) > 1 else f"a lifetime of {first}"
    return f"; the mean delay is {seconds(mean_s)}, with {limit}"


def _why_late(outcome: Outcome, reasons: Reasons) -> str:
    """Name the broker at which most late events have waited longest."""
    brokers = outcome.brokers[outcome.brokers["wait_mean_s"].notna()]
    through = brokers["broker"].map(reasons.late_through).fillna(0.0)
    if not len(brokers) or not through.max() > 0:
        return ""
    guilty = brokers.loc[(through * brokers["wait_mean_s"]).round(9).idxmax()]
    name, share = short(str(guilty["broker"])), float(through.loc[guilty.name])
    wait, service = float(guilty["wait_mean_s"]), float(guilty["service_mean_s"])
    if math.isinf(wait) or guilty["utilisation"] >= 1:
        return (
            f"Broker {name} is overloaded: its queue grows without limit. Add servers, make "
            "it faster, or send it fewer events."
        )
    load = f"{whole_percent(float(guilty['utilisation']))} busy"
    serves = f", and is served in {seconds(service)}" if service > 0 else ""
    arrivals = float(guilty["arrivals_per_s"])
    stream = f" with {rate(arrivals, 'events')}" if math.isfinite(arrivals) else ""
    return (
        f"{whole_percent(share)} of all late events pass broker {name}, which is {load}"
        f"{stream}: an event waits {seconds(wait)} there on average{serves}."
    )


def _why_lost(outcome: Outcome, reasons: Reasons) -> str:
    weights = outcome.subscribers["wanted_per_s"] * outcome.subscribers["count"].fillna(1.0)
    losses = outcome.subscribers[list(LOSSES)].mul(weights, axis=0).sum()
    total = float(losses.sum())
    if not total > 0:
        return ""
    cause = str(losses.idxmax()).removeprefix("lost_")
    words = CAUSES[cause][0].upper() + CAUSES[cause][1:]
    text = f"{words}: {whole_percent(float(losses.max()) / total)} of all losses"
    return f"{text}{_lossiest_link(outcome, reasons) if cause in LINK_CAUSES else ''}."


def _lossiest_link(outcome: Outcome, reasons: Reasons) -> str:
    """Name the link on which most is lost, going by the losses known of each link."""
    on_links = sum(reasons.lost_on.values())
    if not on_links > 0:
        return ""
    place = max(reasons.lost_on, key=lambda each: reasons.lost_on[each])
    share = whole_percent(reasons.lost_on[place] / on_links)
    text = f"; {share} of what links lose is lost on {short(place, 64)}"
    links = outcome.links
    rows = links[(links["source"] + ARROW + links["target"] == place) & links["lost"].notna()]
    if len(rows):
        text += f", which loses {percent(float(rows['lost'].iloc[0]))} of what it carries"
    return text


def _how_sure(comparison: Comparison) -> str:
    summary = comparison.summary
    if not summary.compared:
        return ""
    text = (
        f"The {_NOUNS[comparison.source_a]} differs from the {comparison.source_b} "
        f"on-time shares by {100 * summary.mean_absolute:.2g} percentage points on "
        f"average, {100 * summary.maximum:.2g} at most"
    )
    if summary.with_se:
        inside = whole_percent(summary.within_2se)
        text += f"; {inside} of the subscribers agree within two combined standard errors"
    return text + "."


def _late_and_lost(outcome: Outcome) -> tuple[float, float]:
    known = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    weights = known["wanted_per_s"] * known["count"].fillna(1.0)
    total = float(weights.sum())
    if not total > 0:
        return math.nan, math.nan
    late = float((known["late"].fillna(0.0) * weights).sum()) / total
    lost = float((known[list(LOSSES)].sum(axis=1) * weights).sum()) / total
    return late, lost


def _count(rows: pd.DataFrame) -> int:
    return int(rows["count"].fillna(1.0).sum())
