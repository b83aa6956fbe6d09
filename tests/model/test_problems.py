"""No problem hides another: whatever is wrong with a system is told in one reading, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.errors import InvalidInputError, InvalidSystemError, Problem
from tidings.model import reading

GOOD = (Path(__file__).parent / "small_system.yaml").read_text()


def problems(text):
    with pytest.raises(InvalidSystemError) as error:
        reading.loads(text)
    return error.value.problems


def told(text):
    """What is reported: each place, and the problem as it is shown."""
    return {problem.at: str(problem) for problem in problems(text)}


def with_content(content):
    start, end = GOOD.index("      - {p: 0.7"), GOOD.index("subscribers:")
    return GOOD[:start] + "".join(f"      - {row}\n" for row in content) + GOOD[end:]


def network(brokers, links, rest=""):
    """A system of bare brokers and the given links."""
    names = ", ".join(f"{name}: {{}}" for name in brokers)
    lines = "".join(f"  - {link}\n" for link in links)
    return (
        f"tidings: 1\nbrokers: {{{names}}}\nlinks:\n{lines}"
        f"publishers: {{p: {{at: {brokers[0]}, every: 1s, content: {{event: {{x: 1}}}}}}}}\n"
        f"subscribers: {{s: {{at: {brokers[0]}, wants: {{}}}}}}\n{rest}"
    )


def test_a_value_that_is_no_number_does_not_hide_a_wrong_sum():
    found = told(with_content(["{p: 0.7, event: {a: .nan}}", "{p: 0.2, event: {a: 2}}"]))
    assert set(found) == {"publishers.nasdaq.content", "publishers.nasdaq.content[1].event.a"}
    assert "a sum of 0.8999999999999999" in found["publishers.nasdaq.content"]


def test_a_wrong_row_does_not_hide_rows_that_are_there_twice():
    rows = ["{p: 0.5, event: {a: 1}}", "{p: 0.5, event: {a: 1.0}}", "{p: x, event: {a: 2}}"]
    found = told(with_content(rows))
    assert set(found) == {"publishers.nasdaq.content[2]", "publishers.nasdaq.content[3].p"}


def test_a_probability_that_cannot_be_read_makes_no_wrong_sum():
    found = told(with_content(["{p: x, event: {a: 1}}", "{p: 0.2, event: {a: 2}}"]))
    assert set(found) == {"publishers.nasdaq.content[1].p"}


def test_independent_values_that_are_wrong_do_not_hide_a_wrong_sum():
    text = with_content([]).replace(
        "content:", "content: {independent: {a: [{p: 0.5, value: [1]}, {p: 0.4, valu: 2}]}}"
    )
    at = "publishers.nasdaq.content.independent.a"
    assert set(told(text)) == {at, f"{at}[1].value", f"{at}[2]", f"{at}[2].valu"}


def test_a_bad_failure_of_a_group_does_not_hide_its_unknown_members():
    group = "failure_groups:\n  dc: {members: [hub, mars, hub--mars], failure: {mtbf: -1, mttr: x}}"
    at = "failure_groups.dc"
    assert set(told(GOOD + group)) == {
        f"{at}.failure.mtbf",
        f"{at}.failure.mttr",
        f"{at}.members[2]",
        f"{at}.members[3]",
    }


def test_what_fails_may_be_a_link_that_has_a_mistake():
    text = GOOD.replace("reliability: 0.99", "reliability: 2")
    group = "failure_groups:\n  dc: {members: [east--hub], failure: {mtbf: 1h, mttr: 1s}}"
    assert set(told(text + group)) == {"links[1].reliability"}


def test_a_misspelt_field_of_a_failure_does_not_hide_the_others():
    found = told(GOOD.replace("{mtbf: 59400s, mttr: 600s}", "{mtbf: -1, mtr: 600s}"))
    assert set(found) == {"links[1].failure.mtbf", "links[1].failure.mtr"}


def test_a_bad_law_does_not_hide_what_must_hold_between_fields():
    text = (
        GOOD.replace("{service: {exponential: 3ms}}", "{servers: 2, failure: never}")
        .replace("every: {exponential: 1s}", "every: soon\n    rates: {slot: 1h, per_s: [1]}")
        .replace("off: {exponential: 96s}, service: 62.5ms", "service: soon")
    )
    assert set(told(text)) == {
        "brokers.hub",
        "brokers.hub.failure",
        "publishers.nasdaq",
        "publishers.nasdaq.every",
        "subscribers.alice.connectivity",
        "subscribers.alice.connectivity.service",
    }


def test_a_wrong_field_of_the_routing_does_not_hide_unknown_brokers():
    routing = "routing: {root: mars, by: 7, roots: {x: venus}, tree: [[a, b]]}\n"
    found = told(network("ab", ["{between: [a, b]}"], routing))
    assert set(found) == {"routing", "routing.root", "routing.by", "routing.roots.x"}


def test_the_way_back_does_not_repeat_mistakes_of_the_way_there():
    text = GOOD.replace("reliability: 0.99", "reliability: 2, back: {delay: -1, failure: {}}")
    assert set(told(text)) == {
        "links[1].reliability",
        "links[1].back.delay",
        "links[1].back.failure",
    }


def test_the_way_back_takes_over_what_it_does_not_say():
    text = GOOD.replace(
        "reliability: 0.99", "reliability: 0.9, bandwidth: 1MB/s, back: {bandwidth: null, delay: 1}"
    )
    link = reading.loads(text).links[0]
    assert link.there.bandwidth_bytes_per_s == 1e6
    assert link.back.bandwidth_bytes_per_s is None
    assert (link.back.delay.mean_s, link.back.reliability) == (1.0, 0.9)
    assert link.back.failure == link.there.failure


# ---- links and what they join --------------------------------------------------------------------


def test_a_bad_link_does_not_hide_a_cycle():
    ring = ["{between: [a, b]}", "{between: [b, c]}", "{between: [c, a]}"]
    found = told(network("abcd", [*ring, "{between: [c]}"]))
    assert set(found) == {"links", "links[4].between"}
    assert "a cycle through" in found["links"]


@pytest.mark.parametrize(
    "bad", ["{between: [c]}", "{between: [c, z]}", "{between: [c, c]}", "{delay: 1}", "3"]
)
def test_what_a_bad_link_may_join_is_not_called_out_of_reach(bad):
    found = told(network("abcd", ["{between: [a, b]}", "{between: [b, c]}", bad]))
    assert all(at.startswith("links[3]") for at in found)


def test_what_no_bad_link_can_join_is_told():
    found = told(network("abcd", ["{between: [a, b]}", "{between: [c]}"]))
    assert set(found) == {"links", "links[2].between"}
    assert (
        "3 separate parts (with a, c, d); even with the faulty links mended some stay apart"
        in found["links"]
    )


def test_a_link_with_a_wrong_delay_still_joins():
    found = told(network("abc", ["{between: [a, b], delay: soon}"]))
    assert set(found) == {"links", "links[1].delay"}
    assert "no path from a to c" in found["links"]


def test_a_tree_of_links_with_mistakes_is_not_blamed_for_them():
    links = ["{between: [a, b]}", "{between: [b, z]}", "{between: [a, c]}"]
    found = told(network("abc", links, "routing: {tree: [[a, b], [b, z], [b, c]]}\n"))
    assert set(found) == {"links[2].between[2]", "routing.tree[3]"}


@pytest.mark.parametrize("section", ["brokers", "networks"])
def test_a_section_that_cannot_be_read_makes_no_name_unknown(section):
    text = network("ab", ["{between: [a, b], network: lan}"], "networks: {lan: {bandwidth: 1MB/s}}")
    reading.loads(text)
    start = text.index(section)
    end = text.index("\n", start) if "\n" in text[start:] else len(text)
    assert set(told(text[:start] + f"{section}: 7" + text[end:])) == {section}


# ---- their order --------------------------------------------------------------------------------


def test_problems_come_in_the_order_of_their_lines():
    text = (
        GOOD.replace("tidings: 1", "tidings: 9")
        .replace("p: 0.7", "p: 0.6")
        .replace("at: east", "at: west")
        .replace("{exponential: 3ms}", "{exponential: -3ms, shift: -1}")
        .replace("stays: {exponential: 40s}", "stays: 0")
        .replace("mttr: 600s", "mttr: -600s")
    )
    found = problems(text)
    lines = [problem.line for problem in found]
    assert lines == sorted(lines)
    assert len(set(lines)) == 6
    assert [problem.at for problem in found if problem.line == 5] == [
        "brokers.hub.service.exponential",
        "brokers.hub.service.shift",
    ]


def test_places_are_sorted_by_their_numbers_and_told_once():
    said = [Problem(at=f"links[{number}]", saw="x", want="y") for number in (10, 2, 2, 1)]
    error = InvalidInputError("wrong", said)
    assert [problem.at for problem in error.problems] == ["links[1]", "links[2]", "links[10]"]


@pytest.mark.parametrize(
    ("field", "most"), [("count", 10**12), ("buffer", 10**12), ("servers", 10**5)]
)
def test_a_whole_number_that_nobody_can_mean_is_refused(field, most):
    text = network(["a", "b"], ["{between: [a, b]}"]).replace("a: {}", "a: {service: 1ms}")
    beside = "wants: {}" if field == "count" else "service: 1ms"
    reading.loads(text.replace(beside, f"{beside}, {field}: {most}"))
    (problem,) = problems(text.replace(beside, f"{beside}, {field}: {most + 1}"))
    assert problem.at.endswith(field)
    assert problem.want == f"a whole number, at most {most:,}"


def test_a_number_where_a_name_is_wanted_comes_with_the_remedy():
    text = network(["1", "2"], ["{between: [1, 2]}"])
    found = told(text)
    assert set(found) == {"links[1].between[1]", "links[1].between[2]", "publishers.p.at"} | {
        "subscribers.s.at"
    }
    assert all("(put it in quotes: '" in each for each in found.values())
    quoted = text.replace("[1, 2]", "['1', '2']").replace("at: 1", "at: '1'")
    assert [broker.name for broker in reading.loads(quoted).brokers] == ["1", "2"]


def test_who_is_away_must_also_stay():
    text = network(["a", "b"], ["{between: [a, b]}"]).replace("wants: {}", "wants: {}, away: 1h")
    assert "wants 'stays' as well" in told(text)["subscribers.s.away"]
