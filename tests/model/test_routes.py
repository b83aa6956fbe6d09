import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model import reading, topology
from tidings.model.filters import matches
from tidings.model.routes import route


def random_system(seed, brokers=6, publishers=3, subscribers=8):
    rng = np.random.default_rng(seed)
    lines = ["tidings: 1", "brokers:", *(f"  b{i}: {{}}" for i in range(brokers)), "links:"]
    lines += [f"  - {{between: [b{rng.integers(i)}, b{i}]}}" for i in range(1, brokers)]
    lines.append("publishers:")
    for p in range(publishers):
        rows = ", ".join(f"{{p: 0.25, event: {{x: {4 * p + k}, y: {k % 2}}}}}" for k in range(4))
        lines.append(f"  p{p}: {{at: b{rng.integers(brokers)}, every: 1s, content: [{rows}]}}")
    lines.append("subscribers:")
    for s in range(subscribers):
        wants = rng.choice(
            ["{y: 0}", "{x: {below: 5}}", "{x: {above: 7}}", "{x: 3}", "{}", "{z: 1}"]
        )
        count = rng.integers(1, 4)
        lines.append(f"  s{s}: {{at: b{rng.integers(brokers)}, wants: {wants}, count: {count}}}")
    return reading.loads("\n".join(lines))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_interest_counts_the_matching_subscribers_behind_each_arc(seed):
    system = random_system(seed)
    routes = route(system)
    for index, arc in enumerate(routes.arcs):
        behind = {
            broker
            for broker, into in topology.walk(routes.trees[0], routes.arcs, arc.source)
            if _first_arc(routes, arc.source, broker) == index
        }
        for event, content_class in zip(routes.events, routes.class_of_event, strict=True):
            wanted = sum(
                s.count
                for s in system.subscribers
                if system.broker_index[s.at] in behind and matches(s.wants, event)
            )
            assert routes.interest[index, content_class] == wanted


def _first_arc(routes, source, broker):
    into = dict(topology.walk(routes.trees[0], routes.arcs, source))
    arc = into[broker]
    while arc >= 0 and routes.arcs[arc].source != source:
        arc = into[routes.arcs[arc].source]
    return arc


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_contents_of_a_class_are_wanted_by_the_same_subscribers(seed):
    system = random_system(seed)
    routes = route(system)
    for position, subscriber in enumerate(system.subscribers):
        wanted = routes.wanted_by(position)
        for event, content_class in zip(routes.events, routes.class_of_event, strict=True):
            assert wanted[content_class] == matches(subscriber.wants, event)
    patterns = {tuple(row) for row in routes.wants.tolist()}
    assert len(patterns) == routes.class_count


def test_rows_keep_all_probability_and_lifetimes_apart():
    system = random_system(1)
    routes = route(system)
    rates = routes.rates(np.array([2.0, 3.0, 5.0]))
    np.testing.assert_allclose(rates.sum(axis=1), [2.0, 3.0, 5.0], rtol=1e-12)


def test_events_of_a_topic_follow_the_tree_of_their_topic():
    text = """
    tidings: 1
    routing: {root: a, by: topic, roots: {x: c}}
    brokers: {a: {}, b: {}, c: {}}
    links: [{between: [a, b]}, {between: [b, c]}, {between: [c, a]}]
    publishers:
      p: {at: a, every: 1s, content: [{p: 0.5, event: {topic: x}}, {p: 0.5, event: {topic: y}}]}
    subscribers: {s: {at: b, wants: {}}}
    """
    routes = route(reading.loads(text))
    x, y = routes.class_of_event
    crossed = {
        name: np.flatnonzero(routes.interest[:, c]).tolist() for name, c in (("x", x), ("y", y))
    }
    # Rooted at a, b hangs on a (arc 0 leads there); rooted at c, an x goes from a over c to b.
    assert 0 in crossed["y"]
    assert 0 not in crossed["x"]
    assert 5 in crossed["x"]  # a -> c, the way back of link c--a


def test_trees_are_chosen_by_numbers_and_truth_values_too():
    text = """
    tidings: 1
    routing: {root: a, by: urgent, roots: {true: c, 7: c}}
    brokers: {a: {}, b: {}, c: {}}
    links: [{between: [a, b]}, {between: [b, c]}, {between: [c, a]}]
    publishers:
      p:
        at: a
        every: 1s
        content:
          - {p: 0.25, event: {urgent: true}}
          - {p: 0.25, event: {urgent: 7}}
          - {p: 0.25, event: {urgent: "None"}}
          - {p: 0.25, event: {calm: 1}}
    subscribers: {s: {at: b, wants: {}}}
    """
    routes = route(reading.loads(text))
    names = [routes.trees[t].name for t in routes.tree_of_class[routes.class_of_event]]
    assert names == ["true", "7", "", ""]
