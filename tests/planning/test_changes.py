from __future__ import annotations

import re
from dataclasses import replace

import pytest

from doc_pages import ROOT
from planning.small_systems import one_queue, two_brokers
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.laws import Deterministic, Exponential
from tidings.model.system import Recovery
from tidings.planning.budget import explain
from tidings.planning.change_kinds import Change, times
from tidings.planning.changes import VERBS, changed, read_change, read_changes, sentence, sentences


@pytest.fixture(scope="module")
def system():
    return two_brokers()


def by_name(records):
    return {record.name: record for record in records}


@pytest.mark.parametrize(
    ("change", "section", "before", "after"),
    [
        ("rate p x2", "publishers", "exponential: 0.2", "exponential: 0.1"),
        ("rate p 4/s", "publishers", "exponential: 0.2", "exponential: 0.25"),
        ("rate p {uniform: [0s, 1s]}", "publishers", "exponential: 0.2", "uniform: [0, 1]"),
        ("speed hub x2", "brokers", "exponential: 0.1", "exponential: 0.05"),
        ("service hub x2", "brokers", "exponential: 0.1", "exponential: 0.2"),
        ("service hub 3ms", "brokers", "{exponential: 0.1}", "0.003"),
        ("delay hub--east x2", "links", "exponential: 0.2", "exponential: 0.4"),
        ("delay east--hub 1s", "links", "{exponential: 0.2}", "1"),
        ("reliability hub--east 0.5", "links", "reliability: 0.9", "reliability: 0.5"),
        ("availability east 0.5", "brokers", "mtbf: 900", "mtbf: 100"),
        (
            "failure east {mtbf: 1h, mttr: 1s}",
            "brokers",
            "mtbf: 900, mttr: 100",
            "mtbf: 3600, mttr: 1",
        ),
        ("on moving x2", "subscribers", "on: {exponential: 9}", "on: {exponential: 18}"),
        ("off moving 5s", "subscribers", "off: {exponential: 1}", "off: 5"),
        ("lifetime far x0.5", "subscribers", "lifetime: 3", "lifetime: 1.5"),
        ("lifetime q 7s", "publishers", "lifetime: 2", "lifetime: 7"),
        ("lifetime group:desk 4s", "subscribers", "group: desk", "lifetime: 4, group: desk"),
        ("target near 0.9", "subscribers", "group: desk", "group: desk, target: 0.9"),
        (
            "move far to hub",
            "subscribers",
            "at: east, wants: {topic: a}",
            "at: hub, wants: {topic: a}",
        ),
    ],
)
def test_a_change_changes_what_it_says_and_nothing_else(system, change, section, before, after):
    old, new = (reading.system_document(each) for each in (system, changed(system, [change])))
    assert {key for key in old if old[key] != new.get(key)} == {section}
    texts = [re.sub(r"'|\.0\b", "", str(each[section])) for each in (old, new)]
    assert texts[0].count(before) == 1 or "--" in change
    assert texts[1] == texts[0].replace(before, after, 1)


def test_whom_a_change_is_about(system):
    assert changed(system, ["speed all x2"]).brokers[1].service.law.mean_s == 0.025
    assert changed(system, ["delay at:east x2"]).links[0].back.delay.mean_s == 0.4
    moved = by_name(changed(system, ["move at:east to hub"]).subscribers)
    assert {each.at for each in moved.values()} == {"hub"}
    assert changed(system, ["move at:east to hub"]).publishers[1].at == "hub"


def test_all_lifetimes_at_once(system):
    half = changed(system, ["lifetime all x0.5"])
    assert half.lifetime == Deterministic(value_s=0.5)
    assert by_name(half.publishers)["q"].lifetime == Deterministic(value_s=1.0)
    assert by_name(half.subscribers)["far"].lifetime == Deterministic(value_s=1.5)
    one = changed(system, ["lifetime all {exponential: 9s}"])
    assert one.lifetime == Exponential(mean_s=9.0)
    assert {each.lifetime for each in (*one.publishers, *one.subscribers)} == {None}


def test_a_lifetime_of_contents_gives_way_to_that_of_its_publisher():
    text = "[{p: 0.5, event: {a: 1}, lifetime: 4s}, {p: 0.5, event: {a: 2}}]"
    system = changed(two_brokers(), [f"publisher p {{at: hub, every: 1s, content: {text}}}"])
    scaled = by_name(changed(system, ["lifetime p x2"]).publishers)["p"]
    assert [row.lifetime for row in scaled.content.table] == [Deterministic(value_s=8.0), None]
    assert scaled.lifetime == Deterministic(value_s=2.0)  # the system's, doubled for this one
    fixed = by_name(changed(system, ["lifetime p 3s"]).publishers)["p"]
    assert [row.lifetime for row in fixed.content.table] == [None, None]


def test_without_bursts_as_much_is_published_at_random_times(system):
    bursty = changed(
        system, ["rate p {hyperexponential: [{p: 0.9, mean: 100ms}, {p: 0.1, mean: 10s}]}"]
    )
    assert bursty.publishers[0].is_uneven
    for whom in ("p", "all"):
        calm = changed(bursty, [f"bursts {whom} none"])
        assert calm.publishers[0].every == Exponential(mean_s=0.9 * 0.1 + 0.1 * 10.0)
        assert calm.publishers[1] == bursty.publishers[1]


def test_recovery(system):
    found = changed(system, ["scheme buffering", "refresh 10s"]).recovery
    assert (found.scheme, found.refresh_s) == ("buffering", 10.0)
    assert (
        changed(system, ["scheme buffering", "refresh 10s", "scheme none"]).recovery.refresh_s == 0
    )
    assert changed(one_queue(), ["refresh 10s"]).recovery == Recovery(
        scheme="periodic", refresh_s=10.0
    )


def test_what_never_fails_has_no_failure(system):
    assert changed(system, ["availability east 1"]).brokers[1].failure is None
    assert changed(system, ["failure all none"]).brokers[1].failure is None


def test_a_broker_goes_with_its_links_and_peers(system):
    left = changed(system, ["remove east"])
    assert [each.name for each in left.brokers] == ["hub"]
    assert left.links == ()
    assert [each.name for each in left.publishers] == ["p"]
    assert [each.name for each in left.subscribers] == ["near", "both"]


def test_changes_are_looked_at_as_a_whole(system):
    """A third broker without a link would be no system; with its link, given after, it is."""
    third = changed(system, ["broker west {}", "link hub--west {delay: 1ms}", "move near to west"])
    assert third.links[1].there.delay == Deterministic(value_s=0.001)
    with pytest.raises(InvalidInputError, match="no path from hub to west"):
        changed(system, ["broker west {}"])
    with pytest.raises(InvalidInputError, match="no path"):
        changed(system, ["remove hub--east"])


def test_subscribers_are_added(system):
    new = changed(system, ["add 100 like near at east", "add 100 like near at east"]).subscribers
    assert [(each.at, each.count, each.wants == new[0].wants) for each in new[-2:]] == [
        ("east", 100, True),
        ("east", 100, True),
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("lifetme all x2", "did you mean 'lifetime'"),
        ("rate pp x2", "did you mean 'p'"),
        ("rate p", "wants rate NAME VALUE"),
        ("rate p 0", "a rate above 0"),
        ("rate p x0", "a factor above 0"),
        ("bursts p none", "nothing that this change applies to"),
        ("bursts p x2", "a value, not a factor"),
        ("bursts p fewer", "none"),
        ("rate p xx", "a factor above 0"),
        ("speed hub 2", "takes a factor"),
        ("reliability hub--east x2", "a value, not a factor"),
        ("reliability hub--east 2", "a share from 0 to 1"),
        ("availability hub 0.9", "nothing that this change applies to"),
        ("on near x2", "nothing that this change applies to"),
        ("service hub {expo: 1}", "expo"),
        ("move near east", "move PEER to BROKER"),
        ("move near to nowhere", "nowhere"),
        ("move near to hub now", "move PEER to BROKER"),
        ("add some like near", "add NUMBER like SUBSCRIBER"),
        ("add 3 like all", "the name of one subscriber"),
        ("remove all", "at least one"),
        ("scheme clever", "one of none, periodic"),
        ("delay at:nowhere x2", "at:hub"),
        ("", "begins with ''"),
    ],
)
def test_what_cannot_be_is_said(system, change, said):
    with pytest.raises(InvalidInputError, match=said) as caught:
        changed(system, [change])
    assert f"'{change}'" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "rate p x2", "rate p 5/s", "rate p {exponential: 2s}", "bursts all none",
        "speed 'a hub' x1.25", 'service "o\'hara" {exponential: 3ms, per: subscription}',
        "servers hub 4", "delay hub--east 1/3", "bandwidth hub--east 10Mbit/s",
        "batch p {size: 10, linger: 5ms}", "availability hub 0.99",
        "failure hub {mtbf: 9h, mttr: 5min}", "failure hub none", "connectivity at:hub none",
        "ack_wait w 33.3333ms", "ack_wait w 30s", "crashes w none", "member w {m1: 5ms}",
        "choose w least busy", "keys w even", "scheme none", "timeout none", "refresh 90min",
        "remove hub--east", "move at:east to 'the hub'", "add 3 like alice",
        "add 3 like alice at east", "broker new {service: {exponential: 1ms}, servers: 2}",
        "link hub--new {delay: 2ms, back: {delay: 3ms}}",
        "subscriber s {at: hub, wants: {topic: a}}",
    ],
)  # fmt: skip
def test_the_sentence_of_a_change_says_all_of_it(text):
    if "1/3" in text:  # a time with more digits than people write
        change = Change("delay", "hub--east", Deterministic(value_s=1 / 3))
    else:
        change = read_change(text)
    assert read_change(sentence(change)) == change


@pytest.mark.parametrize(
    "texts",
    [
        ["speed 'b5' x1.6", "speed 'b6' x1.7"],
        ["speed 'a; b' x2", 'remove "it\'s; c"', "scheme bypass"],
        ["member 'w' {\"m; 1\": 5ms}", "rate all x2"],
        ["remove o'brien", "remove o'neill"],  # no quotes: within words
        ["speed a;b x2", "remove c"],
    ],
)
def test_changes_made_together_are_read_from_one_text(texts):
    apart = [read_change(each) for each in texts]
    assert read_changes("; ".join(texts)) == apart
    assert read_changes(";\n".join(texts) + ";") == apart
    assert read_changes(sentences(apart)) == apart


def test_one_text_of_several_changes_makes_them_all():
    system = one_queue()
    name = system.brokers[0].name
    both = changed(system, [f"speed '{name}' x2; rate all x3"])
    assert both == changed(system, [f"speed '{name}' x2", "rate all x3"])
    with pytest.raises(InvalidInputError, match="the change 'speed nobody x2'"):
        changed(system, ["rate all x3; speed nobody x2"])
    with pytest.raises(InvalidInputError, match="begins with ';'"):
        changed(system, ["; "])


OVERLOADED = """
tidings: 1
lifetime: 1s
brokers:
  hub: {}
  "west; 1": {service: {exponential: 150ms}}
  "o'east; 2": {service: {exponential: 160ms}}
links: [{between: [hub, "west; 1"], delay: 100ms}, {between: [hub, "o'east; 2"]}]
publishers: {p: {at: hub, every: {exponential: 100ms}, content: {event: {topic: t}}}}
subscribers: {s: {at: "west; 1", wants: {}}, t: {at: "o'east; 2", wants: {}}}
"""


def test_what_remedies_say_is_read_back_to_the_same_changes():
    system = reading.loads(OVERLOADED)
    remedies = explain(system).remedies
    assert max(len(each.changes) for each in remedies) == 2  # both brokers, made together
    for each in remedies:
        assert tuple(read_changes(each.change)) == each.changes
        assert changed(system, [each.change]) == changed(system, each.changes)


def test_any_name_can_be_changed_where_no_sentence_could_hold_it():
    name = """both ' and " in it, x2"""
    system = replace(one_queue(), brokers=(replace(one_queue().brokers[0], name=name),))
    faster = changed(system, [times("speed", name, 2.0)]).brokers[0]
    assert faster.service.law.mean_s == system.brokers[0].service.law.mean_s / 2.0


@pytest.mark.parametrize(
    ("factor", "power", "found"),
    [(2.0, 2.0, 4.0), (2.0, 0.5, 1.42), (0.5, 0.5, 0.707), (0.5, 4.0, 0.0625), (1.23, 1.0, 1.23)],
)
def test_a_scaled_factor_is_no_nearer_to_1_than_asked(factor, power, found):
    change = times("speed", "hub", factor)
    assert change.scaled(power) == times("speed", "hub", found)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_documented(verb):
    from tidings.planning import changes

    page = (ROOT / "docs/reference/changes.md").read_text("utf-8")
    example = re.compile(rf"(?<![\w`])`{verb} [^`]+`")
    assert re.search(rf"\b{verb}\b", changes.__doc__)
    assert example.search(page), verb


def test_messages_quote_changes_so_that_quotes_in_them_can_be_told_from_theirs():
    with pytest.raises(InvalidInputError, match="the change \"rate 'nobody' x2\": there is no"):
        changed(two_brokers(), ["rate 'nobody' x2"])
    with pytest.raises(InvalidInputError, match="after \"remove 'hub--east'\": 1 problem"):
        changed(two_brokers(), ["remove 'hub--east'"])


def test_a_failure_group_fails_less_or_not_at_all():
    system = reading.loads(
        """
tidings: 1
brokers: {a: {}, b: {}}
links: [{between: [a, b]}]
publishers: {p: {at: a, every: 1s, content: {event: {}}}}
subscribers: {s: {at: b, wants: {}}}
failure_groups: {rack: {members: [a, b], failure: {mtbf: 900s, mttr: 100s}}}
"""
    )
    (half,) = changed(system, ["availability rack 0.5"]).failure_groups
    assert half.failure.up.mean_s == pytest.approx(100.0)
    assert changed(system, ["availability rack 1"]).failure_groups == ()
    assert changed(system, ["failure all none"]).failure_groups == ()
    with pytest.raises(InvalidInputError, match="rack"):
        changed(system, ["availability rock 1"])


GROUP = """
tidings: 1
brokers: {hub: {service: 1ms}}
publishers: {p: {at: hub, every: 1s, content: {event: {}}}}
subscribers:
  workers:
    at: hub
    wants: {}
    processing: 20ms
    consumers:
      members: {quick: {processing: 5ms}, slow: {processing: 90ms}, usual: {}}
      partitions: {count: 3, shares: [0.8, 0.1, 0.1], owners: [slow, quick, usual]}
"""


@pytest.mark.parametrize(
    ("change", "times_ms", "own_ms"),
    [
        ("member workers {slow: 7ms}", [5, 7, None], 20),
        ("processing workers x0.5", [2.5, 45, None], 10),  # whoever has a time of its own too
        ("processing workers 8ms", [5, 90, None], 8),
    ],
)
def test_times_of_members_are_changed(change, times_ms, own_ms):
    (own,) = changed(reading.loads(GROUP), [change]).subscribers
    means = [law and pytest.approx(1e3 * law.mean_s) for law in
             (each.processing for each in own.consumers.members)]  # fmt: skip
    assert times_ms == means
    assert own.processing.mean_s == pytest.approx(own_ms / 1e3)


def test_keys_are_spread_evenly_and_members_chosen_otherwise():
    (own,) = changed(reading.loads(GROUP), ["keys workers even"]).subscribers
    assert own.consumers.partitions.used_shares == pytest.approx([1 / 3] * 3)
    assert own.consumers.partitions.owners == ()
    in_turn = reading.loads(GROUP.replace("partitions", "prefetch: 2  #"))
    (own,) = changed(in_turn, ["choose workers least busy"]).subscribers
    assert own.consumers.choose == "least busy"


def test_a_change_of_a_group_leaves_no_setting_that_would_be_ignored():
    """What another setting takes the place of goes with it, and files that are written are read."""
    more = ("backoff: [1s, 2s]", "deliveries: 3", "prefetch: 2  #")
    text = GROUP.replace("partitions", f"\n{6 * ' '}".join(more))
    patient = changed(reading.loads(text), ["ack_wait workers 9s"])
    own = patient.subscribers[0].consumers
    assert (own.ack_wait_s, own.backoff_s, own.deliveries) == (9.0, (), 3)
    never = changed(patient, ["ack_wait workers none"]).subscribers[0].consumers
    assert (never.ack_wait_s, never.deliveries) == (None, None)
    fetching = reading.loads(text.replace("prefetch: 2", "fetch: {size: 9, linger: 5ms}"))
    one = changed(fetching, ["prefetch workers 1"])
    assert one.subscribers[0].consumers.fetch.linger_s == 0.0
    each = changed(one, ["member workers {usual: 7ms}"])
    assert each.subscribers[0].processing is None
    for system in (patient, one, each):
        assert reading.loads(reading.dumps(system)) == system


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("member workers {nobody: 7ms}", "nothing that this change applies to"),
        ("member workers 7ms", "a member and its time"),
        ("keys workers hot", "even"),
        ("choose workers random", "owners get their events"),
        ("deliveries workers 3", "an 'ack_wait' after which"),
        ("processing workers none", "nothing that this change applies to"),
    ],
)
def test_changes_of_groups_that_make_no_sense_are_refused(change, said):
    with pytest.raises(InvalidInputError) as refused:
        changed(reading.loads(GROUP), [change])
    assert said in str(refused.value)
