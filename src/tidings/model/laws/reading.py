"""Reading a law from a document, in any of the forms people write one.

A bare time is a constant; a mapping names a family. Every mistake is noted at its place, and
reading goes on; a law is given only where nothing was wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from tidings.errors import InvalidInputError, Problem
from tidings.model import units
from tidings.model.document import Place
from tidings.model.laws.empirical import (
    Empirical,
    bin_problems,
    edge_problems,
    from_quantiles,
    share_problems,
)
from tidings.model.laws.heavy import LEAST_WEIBULL_SHAPE, MOST_SCV, MOST_SIGMA, LogNormal, Weibull
from tidings.model.laws.law import Law, weight_problems
from tidings.model.laws.phase_type import (
    HyperExponential,
    PhaseType,
    initial_problems,
    row_problems,
    size_problems,
)
from tidings.model.laws.simple import Deterministic, Exponential, Gamma, Shifted, Uniform

Value = TypeVar("Value")

WANTED = "a time such as 250ms, or a distribution such as {exponential: 250ms}"


def read_law(place: Place) -> Law | None:
    """Read the distribution written at a location; give None after reporting its problems there.

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
        parts[name].report("one distribution family", saw=f"both '{name}' and '{families[0]}'")
    if not families and len(place.problems) == problems:
        place.report(WANTED)
    law = _READERS[families[0]](parts[families[0]]) if families else None
    if law is None or len(place.problems) > problems:
        return None
    return law if by_s is None else Shifted(law=law, by_s=by_s)


def _made(place: Place, make: Callable[[], Law]) -> Law | None:
    """Make a distribution; give None after reporting its family's own problems at the location."""
    try:
        return make()
    except InvalidInputError as error:
        _note(place, error.problems)
        return None


def _note(place: Place, objections: Iterable[Problem]) -> None:
    """Note what a family says against its parts, where they stand in the document."""
    for problem in objections:
        place.report(problem.want, saw=problem.saw)


def _fields(place: Place, *choices: Sequence[str]) -> dict[str, Place]:
    """Read the known fields of a family; report any choice of which not exactly one is given."""
    known = [name for choice in choices for name in choice]
    example = ", ".join(f"{choice[0]}: ..." for choice in choices)
    before = len(place.problems)
    parts = place.mapping(known, want=f"a mapping such as {{{example}}}")
    misspelt = len(place.problems) > before  # then nothing need be missing
    for choice in choices:
        given = [name for name in choice if name in parts]
        if len(given) > 1 or not (given or misspelt):
            saw = f"both {' and '.join(given)}" if given else "neither" if choice[1:] else "none"
            place.report(f"the field {' or '.join(choice)}", saw=saw)
    return parts


def _read(
    parts: Mapping[str, Place], read: Callable[[Place], Value | None], *names: str
) -> Value | None:
    """Read the value of the field that has one of these names; None if it is missing or wrong."""
    values = [read(parts[name]) for name in names if name in parts]
    return values[0] if len(values) == 1 else None


def _numbers(place: Place, read: Callable[[Place], float | None]) -> list[float | None]:
    """Read a list of numbers, None for each of them that is wrong."""
    return [read(item) for item in place.items("a list of numbers")]


def _good(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)


def _positive_time(place: Place) -> float | None:
    return place.seconds(positive=True)


def _positive(place: Place) -> float | None:
    return place.number("a number above 0", above=0.0)


def _up_to(place: Place, most: float) -> float | None:
    return place.number(f"a number above 0 and at most {most:.3g}", above=0.0, most=most)


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
    saw = ""
    if isinstance(place.value, list | tuple) and len(ends) != 2:
        saw = f"{len(ends)} times"
    elif len(_good(ends)) == 2 and not _good(ends)[0] < _good(ends)[1]:
        saw = "{:g} to {:g}".format(*_good(ends))
    if saw:
        place.report("two times, the lower one first", saw=saw, fix="a constant is a bare time")
        return None
    if len(_good(ends)) != 2:
        return None
    low_s, high_s = _good(ends)
    return Uniform(low_s=low_s, high_s=high_s)


def _erlang(place: Place) -> Law | None:
    parts = _fields(place, ["mean"], ["shape"])
    mean_s = _read(parts, _positive_time, "mean")
    shape = _read(parts, lambda part: part.whole(minimum=1), "shape")
    if mean_s is None or shape is None:
        return None
    return _made(place, lambda: Gamma(mean_s=mean_s, shape=shape))


def _gamma(place: Place) -> Law | None:
    parts = _fields(place, ["mean"], ["shape", "scv"])
    mean_s = _read(parts, _positive_time, "mean")
    value = _read(parts, _positive, "shape", "scv")
    if mean_s is None or value is None:
        return None
    shape = value if "shape" in parts else 1.0 / value
    return _made(place, lambda: Gamma(mean_s=mean_s, shape=shape))


def _hyperexponential(place: Place) -> Law | None:
    before = len(place.problems)
    want = "a list such as [{p: 0.3, mean: 1ms}, {p: 0.7, mean: 9ms}]"
    branches = [_fields(branch, ["p"], ["mean"]) for branch in place.items(want)]
    weights = [_read(parts, Place.share, "p") for parts in branches]
    means_s = [_read(parts, _positive_time, "mean") for parts in branches]
    if isinstance(place.value, list | tuple) and None not in weights:
        _note(place, weight_problems("weights", _good(weights)))
    if len(place.problems) > before:
        return None
    return HyperExponential(weights=_good(weights), means_s=_good(means_s))


def _lognormal(place: Place) -> Law | None:
    parts = _fields(place, ["mean", "median"], ["scv", "sigma"])
    middle_s = _read(parts, _positive_time, "mean", "median")
    sigma = _read(parts, lambda part: _up_to(part, MOST_SIGMA), "sigma")
    scv = _read(parts, lambda part: _up_to(part, MOST_SCV), "scv")
    if middle_s is None or (sigma is None) == (scv is None):
        return None
    if scv is None and sigma is not None:
        scv = math.expm1(sigma**2)
    assert scv is not None
    mean_s = middle_s if "mean" in parts else middle_s * math.sqrt(1.0 + scv)
    return _made(place, lambda: LogNormal(mean_s=mean_s, scv=scv))


def _weibull(place: Place) -> Law | None:
    parts = _fields(place, ["scale", "mean"], ["shape"])
    middle_s = _read(parts, _positive_time, "scale", "mean")
    want = f"a number, {LEAST_WEIBULL_SHAPE:g} or more"
    shape = _read(parts, lambda part: part.number(want, least=LEAST_WEIBULL_SHAPE), "shape")
    if middle_s is None or shape is None:
        return None
    scale_s = middle_s if "scale" in parts else middle_s / math.gamma(1.0 + 1.0 / shape)
    return _made(place, lambda: Weibull(scale_s=scale_s, shape=shape))


def _phase_type(place: Place) -> Law | None:
    before = len(place.problems)
    parts = _fields(place, ["initial"], ["generator"])
    initial = _read(parts, lambda part: _numbers(part, Place.share), "initial") or []
    if None not in initial and isinstance(place.inside("initial").value, list | tuple):
        _note(parts["initial"], initial_problems(_good(initial)))
    generator = _read(parts, _generator, "generator") or ()
    if initial and generator:
        _note(parts["generator"], size_problems(len(generator), len(initial)))
    if len(place.problems) > before:
        return None
    return _made(place, lambda: PhaseType(initial=_good(initial), generator=generator))


def _generator(place: Place) -> tuple[tuple[float, ...], ...]:
    """Read the rows of a generator; report what is wrong with each of them."""
    want = "a list of rows of rates"
    if isinstance(place.value, list | tuple) and not place.value:
        place.report(want)
    places = list(place.items(want))
    rows = [_numbers(row, _rate) for row in places]
    for index, row in enumerate(rows):
        if None not in row and isinstance(places[index].value, list | tuple):
            _note(places[index], row_problems([_good(each) for each in rows], index))
    return tuple(_good(row) for row in rows)


def _histogram(place: Place) -> Law | None:
    before = len(place.problems)
    parts = _fields(place, ["edges"], ["weights"])
    edges_s = _read(parts, lambda part: _numbers(part, Place.seconds), "edges")
    weights = _read(parts, lambda part: _numbers(part, Place.share), "weights")
    lists = all(isinstance(part.value, list | tuple) for part in parts.values())
    if edges_s is not None and weights is not None and lists:
        _note(place, bin_problems(len(edges_s), len(weights)))
    if edges_s is not None:
        _note(parts["edges"], edge_problems(_good(edges_s)))
    if weights and None not in weights:
        _note(parts["weights"], weight_problems("weights", _good(weights)))
    if edges_s is None or weights is None or len(place.problems) > before:
        return None
    return Empirical(edges_s=_good(edges_s), weights=_good(weights))


def _quantiles(place: Place) -> Law | None:
    before = len(place.problems)
    points: dict[float, float | None] = {}
    for key, part in place.mapping(want="a mapping such as {0: 1ms, 0.5: 4ms, 1: 80ms}").items():
        share = units.parse(key, {})
        if share is None or not 0.0 <= share <= 1.0 or share in points:
            part.report("each share once, from 0 to 1", saw=f"the share '{key}'")
            share = None
        time_s = part.seconds()
        if share is not None:
            points[share] = time_s
    shares = sorted(points)
    _note(place, edge_problems(_good(points[share] for share in shares)))
    if len(place.problems) == before:
        _note(place, share_problems(shares))
    if len(place.problems) > before:
        return None
    return from_quantiles(shares, _good(points[share] for share in shares))


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
