"""Reading a law from a document, in any of the ways people write one.

A bare time is a constant; a mapping names a family. Every mistake is noted at its place, and
reading goes on; a law is given only where nothing was wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tidings.errors import InvalidInputError
from tidings.model import units
from tidings.model.document import Place
from tidings.model.laws.empirical import Empirical, from_quantiles
from tidings.model.laws.heavy import LEAST_WEIBULL_SHAPE, MOST_SIGMA, LogNormal, Weibull
from tidings.model.laws.law import Law
from tidings.model.laws.phase_type import HyperExponential, PhaseType
from tidings.model.laws.simple import Deterministic, Exponential, Gamma, Shifted, Uniform

WANTED = "a time such as 250ms, or a law such as {exponential: 250ms}"


def read_law(place: Place) -> Law | None:
    """The law written at a place, or None with the problems noted there.

    >>> read_law(Place("250ms")), read_law(Place({"erlang": {"mean": "6ms", "shape": 3}}))
    (Deterministic(value_s=0.25), Gamma(mean_s=0.006, shape=3))
    >>> place = Place({"expnential": "3ms"})
    >>> read_law(place) is None, place.problems[0].fix
    (True, "did you mean 'exponential'?")
    """
    if not isinstance(place.value, Mapping):
        value_s = place.number(WANTED, least=0.0, of=units.SECONDS)
        return None if value_s is None else Deterministic(value_s=value_s)
    problems = len(place.problems)
    parts = place.mapping([*_READERS, "shift"])
    by_s = parts["shift"].seconds() if "shift" in parts else None
    families = [name for name in parts if name != "shift"]
    for name in families[1:]:
        parts[name].report("one family", saw=f"'{name}' beside '{families[0]}'")
    if not families and len(place.problems) == problems:
        place.report(WANTED)
    law = _READERS[families[0]](parts[families[0]]) if families else None
    if law is None or len(place.problems) > problems:
        return None
    return law if by_s is None else Shifted(law=law, by_s=by_s)


def _made(place: Place, make: Callable[[], Law]) -> Law | None:
    """The law, or None with the family's own objections noted at the place."""
    try:
        return make()
    except InvalidInputError as error:
        for problem in error.problems:
            place.report(problem.want, saw=problem.saw)
        return None


def _fields(place: Place, *choices: Sequence[str]) -> dict[str, Place] | None:
    """The fields of a family: exactly one out of each choice, and nothing else."""
    known = [name for choice in choices for name in choice]
    example = ", ".join(f"{choice[0]}: ..." for choice in choices)
    before = len(place.problems)
    parts = place.mapping(known, want=f"a mapping such as {{{example}}}")
    if len(place.problems) > before:
        return None
    for choice in choices:
        given = [name for name in choice if name in parts]
        if len(given) != 1:
            saw = f"both {' and '.join(given)}" if given else "neither" if choice[1:] else "none"
            place.report(f"the field {' or '.join(choice)}", saw=saw)
    return parts if len(place.problems) == before else None


def _numbers(place: Place, read: Callable[[Place], float | None]) -> list[float] | None:
    """A list of numbers, or None if any of them is wrong."""
    before = len(place.problems)
    values = [read(item) for item in place.items("a list of numbers")]
    good = [value for value in values if value is not None]
    return good if len(place.problems) == before else None


def _positive(place: Place) -> float | None:
    return place.number("a number above 0", above=0.0)


def _rate(place: Place) -> float | None:
    return place.number("a rate such as 4/s or 4", of=units.PER_S)


def _deterministic(place: Place) -> Law | None:
    value_s = place.seconds()
    return None if value_s is None else Deterministic(value_s=value_s)


def _exponential(place: Place) -> Law | None:
    mean_s = place.seconds(positive=True)
    return None if mean_s is None else Exponential(mean_s=mean_s)


def _exponential_of_rate(place: Place) -> Law | None:
    rate_per_s = place.number("a rate above 0, such as 4/s", above=0.0, of=units.PER_S)
    if rate_per_s is None:
        return None
    return _made(place, lambda: Exponential(mean_s=1.0 / rate_per_s))


def _uniform(place: Place) -> Law | None:
    ends = _numbers(place, Place.seconds)
    if ends is None:
        return None
    if len(ends) != 2 or not ends[0] < ends[1]:
        saw = f"{len(ends)} times" if len(ends) != 2 else f"{ends[0]:g} to {ends[1]:g}"
        place.report("two times, the lower one first", saw=saw, fix="a constant is a bare time")
        return None
    return Uniform(low_s=ends[0], high_s=ends[1])


def _erlang(place: Place) -> Law | None:
    parts = _fields(place, ["mean"], ["shape"])
    if parts is None:
        return None
    mean_s, shape = parts["mean"].seconds(positive=True), parts["shape"].whole(minimum=1)
    if mean_s is None or shape is None:
        return None
    return _made(place, lambda: Gamma(mean_s=mean_s, shape=shape))


def _gamma(place: Place) -> Law | None:
    parts = _fields(place, ["mean"], ["shape", "scv"])
    if parts is None:
        return None
    mean_s = parts["mean"].seconds(positive=True)
    value = _positive(parts["shape"] if "shape" in parts else parts["scv"])
    if mean_s is None or value is None:
        return None
    shape = value if "shape" in parts else 1.0 / value
    return _made(place, lambda: Gamma(mean_s=mean_s, shape=shape))


def _hyperexponential(place: Place) -> Law | None:
    before = len(place.problems)
    weights, means_s = [], []
    for branch in place.items("a list such as [{p: 0.3, mean: 1ms}, {p: 0.7, mean: 9ms}]"):
        parts = _fields(branch, ["p"], ["mean"])
        if parts is not None:
            weights.append(parts["p"].share())
            means_s.append(parts["mean"].seconds(positive=True))
    if len(place.problems) > before:
        return None
    shares = tuple(weight for weight in weights if weight is not None)
    times_s = tuple(mean_s for mean_s in means_s if mean_s is not None)
    return _made(place, lambda: HyperExponential(weights=shares, means_s=times_s))


def _lognormal(place: Place) -> Law | None:
    parts = _fields(place, ["mean", "median"], ["scv", "sigma"])
    if parts is None:
        return None
    middle_s = (parts["mean"] if "mean" in parts else parts["median"]).seconds(positive=True)
    if "sigma" in parts:
        want = f"a number above 0 and at most {MOST_SIGMA:g}"
        sigma = parts["sigma"].number(want, above=0.0, most=MOST_SIGMA)
        scv = None if sigma is None else math.expm1(sigma**2)
    else:
        scv = _positive(parts["scv"])
    if middle_s is None or scv is None:
        return None
    mean_s = middle_s if "mean" in parts else middle_s * math.sqrt(1.0 + scv)
    return _made(place, lambda: LogNormal(mean_s=mean_s, scv=scv))


def _weibull(place: Place) -> Law | None:
    parts = _fields(place, ["scale", "mean"], ["shape"])
    if parts is None:
        return None
    middle_s = (parts["scale"] if "scale" in parts else parts["mean"]).seconds(positive=True)
    want = f"a number, {LEAST_WEIBULL_SHAPE:g} or more"
    shape = parts["shape"].number(want, least=LEAST_WEIBULL_SHAPE)
    if middle_s is None or shape is None:
        return None
    scale_s = middle_s if "scale" in parts else middle_s / math.gamma(1.0 + 1.0 / shape)
    return _made(place, lambda: Weibull(scale_s=scale_s, shape=shape))


def _phase_type(place: Place) -> Law | None:
    parts = _fields(place, ["initial"], ["generator"])
    if parts is None:
        return None
    initial = _numbers(parts["initial"], Place.share)
    rows = [_numbers(row, _rate) for row in parts["generator"].items("a list of rows of rates")]
    if initial is None or not rows or any(row is None for row in rows):
        if not rows and isinstance(parts["generator"].value, list | tuple):
            parts["generator"].report("a list of rows of rates")
        return None
    generator = tuple(tuple(row) for row in rows if row is not None)
    return _made(place, lambda: PhaseType(initial=tuple(initial), generator=generator))


def _histogram(place: Place) -> Law | None:
    parts = _fields(place, ["edges"], ["weights"])
    if parts is None:
        return None
    edges_s = _numbers(parts["edges"], Place.seconds)
    weights = _numbers(parts["weights"], Place.share)
    if edges_s is None or weights is None:
        return None
    return _made(place, lambda: Empirical(edges_s=tuple(edges_s), weights=tuple(weights)))


def _quantiles(place: Place) -> Law | None:
    before = len(place.problems)
    points: dict[float, float] = {}
    for key, part in place.mapping(want="a mapping such as {0: 1ms, 0.5: 4ms, 1: 80ms}").items():
        share = units.parse(key, {})
        if share is None or not 0.0 <= share <= 1.0 or share in points:
            part.report("each share once, from 0 to 1", saw=f"the share '{key}'")
            continue
        time_s = part.seconds()
        points[share] = math.nan if time_s is None else time_s
    if len(place.problems) > before:
        return None
    shares = sorted(points)
    return _made(place, lambda: from_quantiles(shares, [points[share] for share in shares]))


_READERS: dict[str, Callable[[Place], Law | None]] = {
    "deterministic": _deterministic,
    "exponential": _exponential,
    "rate": _exponential_of_rate,
    "uniform": _uniform,
    "erlang": _erlang,
    "gamma": _gamma,
    "hyperexponential": _hyperexponential,
    "lognormal": _lognormal,
    "weibull": _weibull,
    "phase_type": _phase_type,
    "histogram": _histogram,
    "quantiles": _quantiles,
}
