"""What a subscriber wants: tests on attributes, AND within a conjunction, OR between conjunctions.

==================  =====================================================================
in a document       an event passes when the attribute is present and
==================  =====================================================================
``x``               equals x (also ``{equals: x}``)
``{not: x}``        differs from x; ``{not: [x, y]}``: from each of them
``{below: x}``      is of the kind of x and less; likewise ``above``, ``at_most``, ``at_least``
``{between: [l, h]}``  lies from l to h, both included
``{one_of: [x, y]}``   equals one of them (also a plain list)
``{prefix: AB}``    is a text that begins so
``{contains: BC}``  is a text that has this in it
``{nats: "a.*.>"}``  is a subject that this pattern of NATS wants (:mod:`tidings.model.wildcards`)
``{mqtt: "a/+/#"}``  is a topic that this filter of MQTT wants
``{exists: true}``  nothing more; ``{exists: false}`` passes when it is absent instead
==================  =====================================================================

Several tests in one mapping must all pass. One test twice is written with ``all``:
``{all: [{contains: A}, {contains: B}]}``. A missing attribute passes no test but ``exists: false``.
``{}`` wants everything; a list of mappings wants what any of them wants. Values and their order are
those of :mod:`tidings.model.events`: ``{not: 5}`` lets the text ``5`` pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tidings.errors import InvalidInputError
from tidings.model.document import Place, describe
from tidings.model.events import (
    VALUE_SCHEMA,
    Event,
    Value,
    ValueKind,
    canonical_value,
    read_attributes,
    read_value,
    value_key,
    value_kind,
)
from tidings.model.wildcards import WILD_TESTS, bad_pattern, expression, pattern_schema

Test = Literal[
    "equals",
    "not",
    "one_of",
    "below",
    "above",
    "at_most",
    "at_least",
    "prefix",
    "contains",
    "nats",
    "mqtt",
    "exists",
]
TESTS: tuple[Test, ...] = get_args(Test)
BOUNDS: dict[Test, Callable[[Any, Any], bool]] = {
    "below": operator.lt,
    "above": operator.gt,
    "at_most": operator.le,
    "at_least": operator.ge,
}
_WRITTEN = (*TESTS, "between", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One test on one attribute; ``value`` is a tuple for ``one_of`` and a single value otherwise.

    >>> Constraint(attribute="price", test="below", value=20.0)
    Constraint(attribute='price', test='below', value=20)
    """

    attribute: str
    test: Test
    value: Value | tuple[Value, ...]
    # Python holds True == 1; the kinds keep such constraints apart.
    kinds: tuple[ValueKind, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise InvalidInputError(f"'{self.test}' is not a test; wants one of {', '.join(TESTS)}")
        many = self.value if isinstance(self.value, tuple) else (self.value,)
        distinct = {value_key(value): canonical_value(value) for value in many}
        values = tuple(distinct[key] for key in sorted(distinct))
        kinds = tuple(value_kind(value) for value in values)
        _check(self.test, self.value, kinds)
        single = len(values) == 1
        object.__setattr__(self, "value", values[0] if single else values)
        object.__setattr__(self, "kinds", kinds)
        if self.test == "one_of" and single:
            object.__setattr__(self, "test", "equals")

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of the test, also when it is only one."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Puts constraints in the order in which documents show them."""
        keys = tuple(value_key(value) for value in self.values)
        return self.attribute, TESTS.index(self.test), keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Conjunction:
    """Constraints that must all hold, sorted and without repetition; none at all: everything."""

    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        distinct = sorted(dict.fromkeys(self.constraints), key=lambda one: one.sort_key)
        object.__setattr__(self, "constraints", tuple(distinct))

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Puts conjunctions in the order in which documents show them."""
        return tuple(constraint.sort_key for constraint in self.constraints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conjunctions of which one must hold, sorted and without repetition; none at all: nothing.

    Two filters that are written with the same tests are equal, in whatever order. Two filters that
    merely mean the same may differ; ask :func:`tidings.model.covering.covers` both ways.
    """

    conjunctions: tuple[Conjunction, ...] = ()

    def __post_init__(self) -> None:
        distinct = sorted(dict.fromkeys(self.conjunctions), key=lambda one: one.sort_key)
        object.__setattr__(self, "conjunctions", tuple(distinct))


EVERYTHING = Filter(conjunctions=(Conjunction(),))


def matches(wanted: Filter, event: Event) -> bool:
    """Test whether an event passes a filter.

    >>> cheap = as_filter({"topic": "stock", "price": {"below": 20}})
    >>> matches(cheap, {"topic": "stock", "price": 12}), matches(cheap, {"topic": "stock"})
    (True, False)
    """
    return any(
        all(accepts(test, event.get(test.attribute)) for test in conjunction.constraints)
        for conjunction in wanted.conjunctions
    )


def accepts(constraint: Constraint, value: Value | None) -> bool:
    """Test whether the value of its attribute (None: absent) passes one constraint."""
    kind, test, bound = value_kind(value), constraint.test, constraint.value
    if test == "exists":
        return (value is not None) == bound
    if value is None:
        return False
    if test == "not":
        return kind != constraint.kinds[0] or value != bound
    if kind not in constraint.kinds:
        return False
    if test in BOUNDS:
        return BOUNDS[test](value, bound)
    if test == "prefix":
        return str(value).startswith(str(bound))
    if test == "contains":
        return str(bound) in str(value)
    if test in WILD_TESTS:
        return expression(test, str(bound)).fullmatch(str(value)) is not None
    return value_key(value) in {value_key(wanted) for wanted in constraint.values}


# ---- documents ---------------------------------------------------------------------------------


def as_filter(document: object) -> Filter:
    """Read the filter that a document describes; raise InvalidInputError with all problems.

    >>> as_filter({"price": [40, 12.0]}) == as_filter({"price": {"one_of": [12, 40]}})
    True
    """
    place = Place(document)
    wanted = read_filter(place)
    if wanted is None:
        raise InvalidInputError("this is not a filter", place.problems)
    return wanted


def read_filter(place: Place) -> Filter | None:
    """Read the filter at a location of a document; give None after reporting every problem."""
    before = len(place.problems)
    if isinstance(place.value, Mapping):
        conjunctions = [_read_conjunction(place)]
    elif isinstance(place.value, list | tuple):
        if not place.value:
            place.report("at least one mapping", fix="[] matches nothing; {} matches everything")
        conjunctions = [_read_conjunction(part) for part in place.items()]
    else:
        place.report(
            "a mapping (attribute: test), or a list of such for OR", fix=_meant(place.value)
        )
    if len(place.problems) > before:
        return None
    return Filter(conjunctions=tuple(conjunctions))


_EVERYTHING = ("*", "#", ">", "all", "any", "everything")


def _meant(value: Any) -> str:
    """Guess which filter was meant by a text, as a question.

    >>> _meant("orders"), _meant("sensors/+/t")
    ('did you mean {topic: orders}?', 'did you mean {topic: {mqtt: sensors/+/t}}?')
    >>> _meant("all")
    'did you mean {}, which is everything?'
    """
    if not isinstance(value, str) or not value.strip():
        return ""
    if value.strip().lower() in _EVERYTHING:
        return "did you mean {}, which is everything?"
    if {"*", ">"} & set(value.split(".")):
        return f"did you mean {{topic: {{nats: {value}}}}}?"
    if {"+", "#"} & set(value.split("/")):
        return f"did you mean {{topic: {{mqtt: {value}}}}}?"
    return f"did you mean {{topic: {value}}}?"


def filter_document(wanted: Filter) -> dict[str, Any] | list[dict[str, Any]]:
    """Write a filter as the one document that :func:`read_filter` reads back.

    A filter that wants nothing gives ``[]``, which no system description may hold.

    >>> wanted = as_filter({"topic": {"equals": "stock"}, "price": {"at_most": 9, "at_least": 2}})
    >>> filter_document(wanted)
    {'price': {'between': [2, 9]}, 'topic': 'stock'}
    """
    documents = [_conjunction_document(one) for one in wanted.conjunctions]
    return documents[0] if len(documents) == 1 else documents


def filter_schema() -> dict[str, Any]:
    """Make the JSON Schema of a filter; complete in itself, so that it can stand anywhere."""
    text, bound = {"type": "string"}, {"type": ["string", "number"]}
    some = {"type": "array", "items": VALUE_SCHEMA, "minItems": 1}
    pair = {"type": "array", "minItems": 2, "maxItems": 2}
    pairs = [pair | {"items": {"type": kind}} for kind in ("number", "string")]
    tests: dict[str, Any] = {
        "equals": VALUE_SCHEMA,
        "not": {"anyOf": [VALUE_SCHEMA, some]},
        "one_of": some,
        **dict.fromkeys(BOUNDS, bound),
        "between": {"anyOf": pairs},
        "prefix": text,
        "contains": text,
        **{test: pattern_schema(test) for test in WILD_TESTS},
        "exists": {"type": "boolean"},
    }
    closed = {"type": "object", "additionalProperties": False, "minProperties": 1}
    every = {"type": "array", "items": closed | {"properties": tests}, "minItems": 1}
    mapping = closed | {"properties": tests | {"all": every}}
    conjunction = {
        "type": "object",
        "additionalProperties": {"anyOf": [VALUE_SCHEMA, some, mapping]},
        "propertyNames": {"minLength": 1},
    }
    return {"anyOf": [conjunction, {"type": "array", "items": conjunction, "minItems": 1}]}


def _check(test: Test, value: object, kinds: tuple[ValueKind, ...]) -> None:
    """Refuse a value that the test cannot have; documents are told more kindly, and earlier."""
    special: dict[str, bool] = {
        "one_of": isinstance(value, tuple) and "absent" not in kinds and len(kinds) > 0,
        "exists": kinds == ("flag",),
        **dict.fromkeys(("prefix", "contains", *WILD_TESTS), kinds == ("text",)),
        **dict.fromkeys(BOUNDS, kinds in {("number",), ("text",)}),
    }
    fits = special.get(test, not isinstance(value, tuple) and kinds != ("absent",))
    if not fits or (test in WILD_TESTS and bad_pattern(test, str(value)) is not None):
        raise InvalidInputError(f"the test '{test}' cannot have the value {describe(value)}")


def _read_conjunction(place: Place) -> Conjunction:
    constraints: list[Constraint] = []
    for attribute, part in read_attributes(place).items():
        constraints += _read_attribute(attribute, part)
    return Conjunction(constraints=tuple(constraints))


def _read_attribute(attribute: str, place: Place) -> list[Constraint]:
    """Read all tests that a document sets for one attribute, in whatever form."""
    if place.value is None:
        place.report("a value or a mapping of tests", fix="{exists: false} asks for its absence")
        return []
    if isinstance(place.value, list | tuple):
        return _read_test(attribute, "one_of", place)
    if not isinstance(place.value, Mapping):
        return _read_test(attribute, "equals", place)
    return _read_mapping(attribute, place, _WRITTEN)


def _read_mapping(attribute: str, place: Place, known: tuple[str, ...]) -> list[Constraint]:
    """Read the tests of a mapping; ``all`` holds mappings like it, but no further ``all``."""
    if not place.value:
        place.report("at least one test", fix=f"{{exists: true}} asks only for '{attribute}'")
    constraints: list[Constraint] = []
    for name, part in place.mapping(known, "a mapping of tests, such as {contains: AB}").items():
        if name == "all":
            for inner in _some(part, "a list of test mappings"):
                constraints += _read_mapping(attribute, inner, _WRITTEN[:-1])
        else:
            constraints += _read_test(attribute, name, part)
    return constraints


def _read_test(attribute: str, name: str, place: Place) -> list[Constraint]:
    """Read one test as constraints: one, or two for a range, or as many as ``not`` lists."""
    pairs: list[tuple[Test, Value | tuple[Value, ...] | None]]
    match name:
        case "one_of":
            parts = list(_some(place, "a list of values"))
            values = [value for part in parts if (value := read_value(part)) is not None]
            pairs = [("one_of", tuple(values) or None)]
        case "not" if isinstance(place.value, list | tuple):
            pairs = [("not", read_value(part)) for part in _some(place, "a list of values")]
        case "between":
            low, high = _read_range(place)
            pairs = [("at_least", low), ("at_most", high)]
        case "below" | "above" | "at_most" | "at_least":
            pairs = [(name, _read_bound(place))]
        case "prefix" | "contains":
            pairs = [(name, _read_text(place))]
        case "nats" | "mqtt":
            pairs = [(name, _read_pattern(name, place))]
        case "exists":
            pairs = [("exists", place.flag())]
        case _:
            pairs = [("not" if name == "not" else "equals", read_value(place))]
    return [
        Constraint(attribute=attribute, test=test, value=value)
        for test, value in pairs
        if value is not None
    ]


def _some(place: Place, want: str) -> Iterable[Place]:
    """Give the parts of a list; report a list that is empty."""
    if isinstance(place.value, list | tuple) and not place.value:
        place.report(f"{want}, at least one")
    return place.items(want)


def _read_bound(place: Place) -> Value | None:
    if isinstance(place.value, bool):
        place.report("a number or a text", fix="true and false have no order")
        return None
    return read_value(place)


def _read_text(place: Place) -> Value | None:
    if not isinstance(place.value, str):
        fix = "quote a number to mean its digits" if isinstance(place.value, int | float) else ""
        place.report("a text", fix=fix)
        return None
    return read_value(place)


def _read_pattern(name: str, place: Place) -> Value | None:
    pattern = _read_text(place)
    problem = None if pattern is None else bad_pattern(name, str(pattern))
    if problem is not None:
        place.report(problem.want, fix=problem.fix)
        return None
    return pattern


def _read_range(place: Place) -> tuple[Value | None, Value | None]:
    """Read the two ends of ``between``; give None twice after reporting a problem."""
    want = "a list of two, [lowest, highest]"
    parts = list(place.items(want))
    if isinstance(place.value, list | tuple) and len(parts) != 2:
        place.report(want)
    ends = [_read_bound(part) for part in parts]
    if len(parts) != 2 or ends[0] is None or ends[1] is None:
        return None, None
    low, high = ends[0], ends[1]
    saw = f"[{describe(low)}, {describe(high)}]"
    if value_kind(low) != value_kind(high):
        place.report("two numbers or two texts", saw=saw)
        return None, None
    if BOUNDS["above"](low, high):
        place.report("the lowest first", saw=saw, fix="nothing lies between them")
        return None, None
    return low, high


def _conjunction_document(conjunction: Conjunction) -> dict[str, Any]:
    by_attribute: dict[str, list[Constraint]] = {}
    for constraint in conjunction.constraints:
        by_attribute.setdefault(constraint.attribute, []).append(constraint)
    return {attribute: _tests_document(tests) for attribute, tests in by_attribute.items()}


def _tests_document(constraints: list[Constraint]) -> object:
    """Write the tests on one attribute in the shortest form that says them all."""
    values: dict[str, list[Any]] = {}
    for one in constraints:
        value = list(one.values) if one.test == "one_of" else one.value
        values.setdefault(one.test, []).append(value)
    if list(values) == ["equals"] and len(constraints) == 1:
        return values["equals"][0]
    if any(len(operands) > 1 for test, operands in values.items() if test != "not"):
        single = [{test: value} for test, operands in values.items() for value in operands]
        return {"all": single}
    written: dict[str, Any] = {
        test: operands if len(operands) > 1 else operands[0] for test, operands in values.items()
    }
    low, high = written.get("at_least"), written.get("at_most")
    same_kind = low is not None and high is not None and value_kind(low) == value_kind(high)
    if same_kind and not BOUNDS["above"](low, high):
        del written["at_least"], written["at_most"]
        written["between"] = [low, high]
    return written
