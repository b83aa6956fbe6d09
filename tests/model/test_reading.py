from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidSystemError
from tidings.model import reading, yaml_text
from tidings.model.filters import matches
from tidings.model.laws import Deterministic

GOOD = (Path(__file__).parent / "small_system.yaml").read_text()
FULL = (Path(__file__).parent / "full_system.yaml").read_text()


def test_quarter_of_a_second_has_two_spellings():
    one, other = (
        reading.loads(GOOD.replace("lifetime: 1s", f"lifetime: {t}")) for t in ("250ms", "0.25")
    )
    assert one.lifetime == other.lifetime == Deterministic(value_s=0.25)


@pytest.mark.parametrize("text", [GOOD, FULL])
def test_what_is_written_reads_as_the_same_system(text):
    system = reading.loads(text)
    assert reading.loads(reading.dumps(system)) == system


# Each mistake, the place that must be named, and a word of what is wanted.
MISTAKES = [
    ("tidings: 1", "tidings: 7", "tidings", "1"),
    ("at: east\n", "at: west\n", "subscribers.alice.at", "hub, east"),
    ("p: 0.7", "p: 0.6", "publishers.nasdaq.content", "sum"),
    ("{exponential: 3ms}", "{exponential: -3ms}", "brokers.hub.service", "above 0"),
    ("{exponential: 3ms}", "{exponential: .nan}", "brokers.hub.service", "above 0"),
    ("{exponential: 3ms}", "{exponental: 3ms}", "brokers.hub.service", "exponential"),
    ("{exponential: 3ms}", "{exponential: 3 parsecs}", "brokers.hub.service", "250ms"),
    ("reliability: 0.99", "reliability: 1.2", "links[1].reliability", "from 0 to 1"),
    ("[hub, east]", "[hub, hub]", "links[1].between", "two different"),
    ("[hub, east]", "[hub, mars]", "links[1].between[2]", "one of the brokers"),
    ("[hub, east]", "[hub]", "links[1].between", "two brokers"),
    ("  alice:", "  hub:", "subscribers.hub", "a name of its own"),
    ("  east: {", "  hub: {", "brokers.hub", "each name once"),
    ("scheme: buffering", "scheme: hope", "recovery.scheme", "none, periodic"),
    ("availability: 0.95", "availability: 1.5", "brokers.east.failure.availability", "share"),
    ("mttr: 600s", "mtr: 600s", "links[1].failure", "mttr"),
    ("  nasdaq:\n    at: hub", "  nasdaq:\n    home: hub", "publishers.nasdaq", "at"),
    ("every: {exponential: 1s}", "every: 0s", "publishers.nasdaq.every", "above 0"),
    ("{below: 20}", "{bellow: 20}", "subscribers.alice.wants", "below"),
    ("stays: {exponential: 40s}", "stay: {exponential: 40s}", "subscribers.alice", "stays"),
    ("off: {exponential: 96s}, ", "", "subscribers.alice.connectivity", "either the distributions"),
    ("{service: {exponential: 3ms}}", "{discipline: priority}", "brokers.hub", "'service' law"),
    (
        "{below: 20}",
        "{below: 3, above: 5}",
        "subscribers.alice.wants.price",
        "at least one value can pass",
    ),
    (
        "{below: 20}",
        "{at_least: 3, below: 3}",
        "subscribers.alice.wants.price",
        "one value can pass",
    ),
    (
        "{below: 20}",
        "{below: 3, prefix: a}",
        "subscribers.alice.wants.price",
        "a number, a text and a boolean at once",
    ),
    (
        "{below: 20}",
        "{equals: 3, one_of: [4, 5]}",
        "subscribers.alice.wants.price",
        "one value can pass",
    ),
    (
        "{below: 20}",
        "{exists: false, not: 2}",
        "subscribers.alice.wants.price",
        "one value can pass",
    ),
    (
        "{below: 20}",
        "{all: [{below: a}, {prefix: b}]}",
        "wants.price",
        "at least one value can pass",
    ),
    ("{below: 20}", "{between: [a, 3]}", "subscribers.alice.wants.price", "two numbers or two"),
    ("lifetime: 1s", "lifetime: !!python/object:os.system 1s", "lifetime", "!!python/object:os."),
    ("recovery: {", "recovery: !mine {", "recovery", "the tag !mine"),
    ("  - {p: 0.7", "  - !!set {p: 0.7", "publishers.nasdaq.content[1]", "the tag !!set"),
    ("lifetime: 1s", "lifetime: !!int 1s", "lifetime", "the tag !!int"),
    ("lifetime: 1s", "!secret lifetime: 1s", "lifetime", "the tag !secret"),
    ("reliability: 0.99", "back: {network: moon}", "links[1].back.network", "one of the networks"),
    ("reliability: 0.99", "reliability: 99.5", "links[1].reliability", "did you mean 0.995?"),
    ("reliability: 0.99", "loss: 0.1%", "links[1].loss", "did you mean reliability: 0.999?"),
    ("lifetime: 1s", "lifetime: 15sec", "lifetime", "did you mean 15s?"),
    ("lifetime: 1s", "lifetime: 1.5 hours", "lifetime", "did you mean 1.5h?"),
    ("at: east", "at: eats", "at", "did you mean 'east'?"),
    ("every:", "rate: 100/s  #", "rate", "did you mean every: {rate: 100/s}?"),
    ("{exponential: 3ms}", "{mean: 3ms}", "mean", "such as exponential: 3ms"),
]


@pytest.mark.parametrize(
    ("right", "wrong", "place", "want"), MISTAKES, ids=lambda text: str(text)[:24]
)
def test_a_mistake_is_reported_with_its_place_and_what_is_wanted(right, wrong, place, want):
    assert right in GOOD
    with pytest.raises(InvalidSystemError) as error:
        reading.loads(GOOD.replace(right, wrong, 1))
    problems = error.value.problems
    assert any(place in p.at and want in f"{p.want} {p.fix} {p.saw}" for p in problems), str(
        error.value
    )
    assert all(p.line is not None for p in problems), str(error.value)


def test_all_problems_are_reported_at_once_also_those_between_fields():
    text = GOOD
    for right, wrong in [
        ("{exponential: 3ms}", "{exponential: -3ms}"),
        ("p: 0.7", "p: 0.6"),
        ("at: east", "at: west"),
        ("reliability: 0.99", "reliability: 2"),
        ("lifetime: 1s", "lifetime: yesterday"),
    ]:
        text = text.replace(right, wrong, 1)
    with pytest.raises(InvalidSystemError) as error:
        reading.loads(text)
    assert len(error.value.problems) == 5, str(error.value)
    assert str(error.value).startswith("the text: 5 problems\n")


def test_tags_that_say_what_a_value_is_anyway_are_fine():
    text = GOOD.replace("lifetime: 1s", "lifetime: !!str 1s").replace("0.99", "!!float 0.99")
    assert reading.loads(text) == reading.loads(GOOD)
    assert yaml_text.parse('[!!str 12, !!int "12", !!bool true, yes, 1e5, ! 3]').value == [
        "12",
        12,
        True,
        "yes",
        1e5,
        3,
    ]


def test_a_null_attribute_of_an_event_is_an_absent_one():
    text = GOOD.replace("symbol: ACME", "symbol: null")
    assert "symbol" not in reading.loads(text).publishers[0].content.rows()[0].event


def test_equal_systems_have_equal_fingerprints_and_others_do_not():
    prints = [reading.fingerprint(reading.loads(text)) for text in (GOOD, FULL)]
    spelt = GOOD.replace("1s", "1000ms").replace("{exponential: 3ms}", "{rate: 333.33333333333333}")
    assert (
        reading.fingerprint(reading.loads(GOOD.replace("lifetime: 1s", "lifetime: 1.0")))
        == (prints[0])
    )
    negative = [
        reading.loads(GOOD.replace("lifetime: 1s", f"lifetime: {t}")) for t in ("0", "-0.0")
    ]
    assert reading.fingerprint(negative[0]) == reading.fingerprint(negative[1])
    assert len({*prints, reading.fingerprint(reading.loads(spelt.replace("0.99", "0.98")))}) == 3


def test_a_cycle_wants_a_routing_tree():
    cyclic = FULL.replace("routing: {root: a, by: topic, roots: {stock: b, fx: c}}\n", "")
    with pytest.raises(InvalidSystemError, match="a cycle through"):
        reading.loads(cyclic)


def test_a_chosen_tree_must_be_one():
    def with_tree(tree):
        routing = "routing: {root: a, by: topic, roots: {stock: b, fx: c}}"
        return FULL.replace(routing, f"routing: {{tree: {tree}}}")

    reading.loads(with_tree("[[a, b], [b, c]]"))
    for tree, complaint in [
        ("[[a, b], [b, c], [c, a]]", "a cycle"),
        ("[[a, b]]", "connect all brokers"),
        ("[[a, b], [b, d]]", "one of the links"),
    ]:
        with pytest.raises(InvalidSystemError, match=complaint):
            reading.loads(with_tree(tree))


def test_brokers_that_nothing_joins_are_named():
    with pytest.raises(InvalidSystemError, match="no path from hub to east"):
        reading.loads(GOOD.replace(GOOD[GOOD.index("links:") : GOOD.index("publishers:")], ""))


@pytest.mark.parametrize(
    ("recovery", "message"),
    [
        ("{scheme: periodic, timeout: 5s}", "recovery.timeout.*a 'refresh' interval above 0"),
        ("{scheme: none, refresh: 5s}", "recovery.refresh.*a scheme other than 'none'"),
        ("{scheme: none, detection: 5s}", "recovery.detection.*a scheme other than 'none'"),
    ],
)
def test_a_field_of_recovery_that_would_be_ignored_is_refused(recovery, message):
    with pytest.raises(InvalidSystemError, match=message):
        reading.loads(GOOD.replace("lifetime: 1s", f"lifetime: 1s\nrecovery: {recovery}"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "42",
        "a: [",
        "\t- x",
        "*a",
        "&a [*a]",
        "{tidings: 1}",
        "tidings: 1\nbrokers: []",
        "? [a]\n: b",
    ],
)
def test_what_is_no_system_at_all_is_an_error_of_input(text):
    with pytest.raises(InvalidSystemError):
        reading.loads(text)


def test_unreadable_files_are_errors_of_input(tmp_path):
    (tmp_path / "latin.yaml").write_bytes("tidings: 1 # é".encode("latin-1"))
    for path in ("missing.yaml", "latin.yaml", ".", "nul\0.yaml"):
        with pytest.raises(InvalidSystemError) as error:
            reading.load(tmp_path / path)
        assert len(error.value.problems) == 1


def test_aliases_that_expand_without_end_are_refused():
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30))
    with pytest.raises(InvalidSystemError):
        reading.loads(bomb)


_LINES = FULL.splitlines()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_cleanly(data):
    """Lines dropped, doubled or given odd values: a system, or an error of input; nothing else."""
    lines = list(_LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        damage = data.draw(st.sampled_from(["drop", "double", "value", "cut", "noise"]))
        if damage == "drop":
            lines[index] = ""
        elif damage == "double":
            lines.insert(index, lines[index])
        elif damage == "value" and ":" in lines[index]:
            odd = [
                "-1",
                ".nan",
                ".inf",
                "null",
                "[]",
                "{}",
                "true",
                "x",
                "1e999",
                '""',
                "[[[]]]",
                "-5ms",
            ]
            lines[index] = lines[index].rsplit(":", 1)[0] + ": " + data.draw(st.sampled_from(odd))
        elif damage == "cut":
            lines[index] = lines[index][: data.draw(st.integers(0, len(lines[index])))]
        else:
            lines[index] += data.draw(st.text(max_size=5))
    problems = ()
    try:
        system = reading.loads("\n".join(lines))
    except InvalidSystemError as error:
        problems = error.problems
    else:
        assert reading.loads(reading.dumps(system)) == system
    assert all(problem.at and problem.saw and problem.want for problem in problems)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_what_is_dumped_parses_as_the_same_values(value):
    place = yaml_text.parse(yaml_text.dump(value))
    assert not place.problems
    assert place.value == value


def test_values_keep_their_kind_where_they_are_names_and_names_stay_texts():
    system = reading.loads(
        """
        tidings: 1
        brokers: {007: {}}
        publishers:
          p:
            at: "007"
            every: 1s
            content:
              independent:
                level: {1: 0.5, 2: 0.5}
                hot: {true: 0.5, false: 0.5}
                note: {null: 0.9, x: 0.1}
                code: {"1": 1}
        subscribers:
          s: {at: "007", wants: {level: 1, hot: true, note: {exists: false}, code: "1"}}
        """
    )
    assert system.brokers[0].name == "007"
    wanted = sum(
        row.probability
        for row in system.publishers[0].content.rows()
        if matches(system.subscribers[0].wants, row.event)
    )
    assert wanted == pytest.approx(0.5 * 0.5 * 0.9, rel=1e-12)
    assert reading.loads(reading.dumps(system)) == system
