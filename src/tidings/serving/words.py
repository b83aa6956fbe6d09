"""What a state says first, in words: who is late, why, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tidings.reporting.headline import KeyFigure, Sentence
from tidings.reporting.wording import UNKNOWN, percent, plural, quantity, seconds, short
from tidings.watching.state import BACKLOG, CHANGED, EVERYBODY, Alarm, Share, Standing, State

MOST_NAMED = 3


def everybody(state: State) -> Standing:
    """Give how all subscribers together stand."""
    return next(
        (each for each in state.standings if each.name == EVERYBODY), Standing(name=EVERYBODY)
    )


def subscribers(state: State) -> list[Standing]:
    """List how each subscriber stands, the worst first."""
    return [each for each in state.standings if each.name != EVERYBODY]


def lasting(state: State) -> list[Alarm]:
    """List the alarms that have not ended."""
    return [each for each in state.alarms if each.until_ns is None]


def is_below(standing: Standing) -> bool:
    """Tell whether surely a smaller share is on time than was promised."""
    return (
        standing.promised is not None
        and standing.measured is not None
        and standing.measured.high < standing.promised
    )


def lead(state: State | None) -> str:
    """Say in one sentence how things are."""
    if state is None:
        return "Nothing is known yet: no state has been written to this folder."
    people = subscribers(state)
    below = [each for each in people if is_below(each)]
    alarms = lasting(state)
    if below:
        verb = "gets" if len(below) == 1 else "get"
        return (
            f"{len(below):,} of {plural(len(people), 'subscriber')} {verb} fewer events on time "
            "than promised."
        )
    if alarms:
        others = f", and {plural(len(alarms) - 1, 'other alarm')}" if len(alarms) > 1 else ""
        return f"{_capital(_where(alarms[0]))}{others}."
    whole = everybody(state)
    if whole.measured is None:
        return "Nothing is measured yet: the first period is counted a little after it has ended."
    share = percent(whole.measured.share)
    if whole.promised is None and any(each.promised is not None for each in people):
        return f"All is as promised to each: {share} of the wanted events arrive on time."
    if whole.promised is None:
        return f"{share} of the wanted events arrive on time; nothing was promised."
    if whole.measured.share < whole.promised:
        return f"{share} of the wanted events arrive on time; {percent(whole.promised)} promised."
    return f"All is as promised: {share} of the wanted events arrive on time."


def sentences(state: State | None) -> list[Sentence]:
    """Say who is late, why, what to do, and what lies ahead."""
    if state is None:
        return []
    below = [each for each in subscribers(state) if is_below(each)]
    alarms = lasting(state)
    texts = {
        "Who": _who(below),
        "Why": _why(below, alarms),
        "Do": next((each.do for each in alarms if each.do), ""),
        "Ahead": next(
            (f"{_where(each)}: {size(each)}" for each in alarms if each.kind == BACKLOG), ""
        ),
    }
    return [
        Sentence(question=name, text=f"{text if name == 'Who' else _capital(text)}.")
        for name, text in texts.items()
        if text
    ]


def figures(state: State | None) -> list[KeyFigure]:
    """Give the key figures: shares on time, budget, backlog, alarms."""
    if state is None:
        return []
    whole = everybody(state)
    unsure = sum(
        1
        for each in subscribers(state)
        if not is_below(each)
        and each.promised is not None
        and each.measured is not None
        and each.measured.share < each.promised
    )
    listed = [
        KeyFigure(
            label="On time, measured",
            value=_share(whole.measured),
            note=f"{_interval(whole.measured)}in {seconds(state.window_s)}",
        ),
        KeyFigure(
            label="Promised",
            value=UNKNOWN if whole.promised is None else percent(whole.promised),
        ),
        KeyFigure(
            label="Predicted", value=_share(whole.predicted), note=_interval(whole.predicted, "")
        ),
    ]
    if whole.burn_rates:
        window, rate = max(whole.burn_rates.items(), key=lambda each: each[1])
        listed.append(
            KeyFigure(
                label="Burn rate",
                value=f"{rate:.3g} ×",
                note=f"over {window}; at 1 × the error budget lasts exactly its period",
            )
        )
    listed.append(
        KeyFigure(
            label="Backlog",
            value=f"{sum(state.backlogs.values()):,}",
            note=_fullest(state),
        )
    )
    listed.append(
        KeyFigure(
            label="Alarms",
            value=str(len(lasting(state))),
            note=f"{unsure:,} more may be below their promise" if unsure else "",
        )
    )
    return listed


def warnings(state: State | None, problem: str = "") -> list[str]:
    """Say what is wrong with the watching itself."""
    texts = [problem] if problem else []
    if state is None:
        return texts
    health = state.health
    if health.problem:
        texts.append(f"The latest look had a problem: {health.problem}")
    if 0 < health.trigger_s < health.batch_s:
        texts.append(
            f"Watching does not keep up: the latest batch took {seconds(health.batch_s)}, and one "
            f"is due every {seconds(health.trigger_s)}."
        )
    if health.behind_s > max(60.0, 3 * health.trigger_s):
        texts.append(f"The newest event is {seconds(health.behind_s)} old.")
    return texts


def size(alarm: Alarm) -> str:
    """Give how large an alarm is, with its unit."""
    return quantity(alarm.size, alarm.unit)


def _who(below: Sequence[Standing]) -> str:
    if not below:
        return ""
    named = [
        f"{short(each.name)} ({percent(each.measured.share)} on time, {percent(each.promised)} "
        "promised)"
        for each in below[:MOST_NAMED]
        if each.measured is not None and each.promised is not None
    ]
    others = f", and {len(below) - MOST_NAMED:,} others" if len(below) > MOST_NAMED else ""
    return ", ".join(named) + others


def _why(below: Sequence[Standing], alarms: Sequence[Alarm]) -> str:
    changed = [_where(each) for each in alarms if each.kind == CHANGED]
    causes = Counter(each.cause for each in below if each.cause)
    for each in alarms:
        if each.kind != CHANGED and each.cause and each.cause not in causes:
            causes[each.cause] = 1
    named = [cause for cause, _ in causes.most_common(MOST_NAMED)]
    return "; ".join([*named, *changed[:1]])


def _where(alarm: Alarm) -> str:
    """Say what an alarm is about, and where if that does not say it."""
    unsaid = [short(each) for each in alarm.unnamed()][:MOST_NAMED]
    return f"{alarm.what} ({', '.join(unsaid)})" if unsaid else alarm.what


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _share(share: Share | None) -> str:
    return UNKNOWN if share is None else percent(share.share)


def _interval(share: Share | None, after: str = ", ") -> str:
    return "" if share is None else f"{percent(share.low)} to {percent(share.high)}{after}"


def _fullest(state: State) -> str:
    if not any(state.backlogs.values()):
        return "events"
    name = max(state.backlogs, key=lambda each: state.backlogs[each])
    return f"events, most at {short(name)}"
