"""The names of the numbers that theory's error depends on, in the order in which they are kept."""

from __future__ import annotations

# Per path, the largest over its brokers, or the sum.
LARGEST = (
    "load",
    "load_at_worst",
    "own_bursts",
    "own_pacing",
    "other_bursts",
    "other_pacing",
    "service_bursts",
    "service_pacing",
    "load_by_presence",
)
SUMS = ("busy_hops", "approximate_hops", "work", "lone_hops")
ALONG = (*LARGEST, *SUMS)
# Per path, of what fails: whether anything does and what is done about it (0 or 1), P[something
# of it is down], failures while it carries an event, and whether waits are known only roughly.
FAILING = ("failing", "bypass", "buffering", "unavailability", "struck", "rough_repairs")
# Of the subscriber and of the system.
OF_PEERS = (
    "peer",
    "peer_load",
    "peer_periods",
    "peer_unevenness",
    "mobile_publishers",
    "handed_over",
    "moving_and_failing",
    "own_churn",
    "any_churn",
    "own_queue",
)
# 0 or 1: theory is never believed where one is 1. A broker that is busier while a subscriber is
# there than on average; streams of publishers that are not Poisson and come over a random delay of
# their own; a subscriber's own queue of what is not Poisson; buffers for who comes and goes;
# publishers that are connected for times that are not exponential, which theory takes for it.
NEVER_OF_SYSTEMS = (
    "displaced_streams", "uneven_own_queue", "buffered_churn", "publisher_periods",
)  # fmt: skip
NEVER_BELIEVED = ("load_by_presence", *NEVER_OF_SYSTEMS)
# Nor is it where all of these exceed what stands beside them: what it leaves out there does not
# show in other numbers. Times connected are taken for exponential. What a paced stream meets of
# others' bursts is taken for what any moment would. After constant services hardly anybody waits at
# the next ones, and theory has them wait.
NEVER_TOGETHER: dict[str, dict[str, float]] = {
    "peer_periods": {"peer_periods": 0.0},
    "own_pacing": {"own_pacing": 0.5, "other_bursts": 0.5, "approximate_hops": 0.0},
    "service_pacing": {"service_pacing": 1.5, "approximate_hops": 1.0},
}
# What theory leaves out and is off by at least: a bound beside what was measured, not part of it.
LEFT_OUT = ("handed_over",)
FEATURES = (*ALONG, *FAILING, *OF_PEERS, *NEVER_OF_SYSTEMS)
# How much a share moves if waits that are not exact are a step of the grid longer; how far it is
# from 0 or 1.
OF_SHARES = ("sensitivity", "distance")
# Each in plain words, to end the sentence "theory was not tested where ...".
IN_WORDS = {
    "load": "a broker is this busy",
    "load_at_worst": "a broker can get this busy at its worst moment",
    "own_bursts": "events on the path come in such bursts",
    "own_pacing": "events on the path come this regularly",
    "other_bursts": "other traffic at a broker comes in such bursts",
    "other_pacing": "other traffic at a broker comes this regularly",
    "service_bursts": "service times vary this much",
    "service_pacing": "service times vary this little",
    "publisher_periods": "publishers are connected for times that are not exponential",
    "load_by_presence": "a broker is busier while the subscriber is there than on average",
    "busy_hops": "a path crosses this many busy brokers",
    "approximate_hops": "this many waits on a path are approximated",
    "work": "a path crosses brokers this busy in all",
    "lone_hops": "one stream is this much of a broker's traffic",
    "failing": "brokers or links on a path fail",
    "bypass": "events bypass failures",
    "buffering": "events are buffered until a repair",
    "unavailability": "a path is down this often",
    "struck": "failures hit this many events in transit",
    "rough_repairs": "waits for repairs are known only roughly",
    "peer": "the subscriber is mobile",
    "peer_load": "a mobile subscriber's connection is this busy",
    "peer_periods": "connected times vary like this",
    "peer_unevenness": "bursts or regular traffic wait for a mobile subscriber",
    "mobile_publishers": "publishers are mobile",
    "handed_over": "publishers hand over this much on their return",
    "moving_and_failing": "peers are mobile and brokers or links fail",
    "own_churn": "the subscriber comes and goes",
    "any_churn": "some subscribers come and go",
    "own_queue": "the subscriber's own queue is this busy",
    "displaced_streams": "traffic that is not Poisson has random link delays",
    "uneven_own_queue": "a subscriber with a queue gets traffic that is not Poisson",
    "buffered_churn": "events are buffered for a subscriber that comes and goes",
    "sensitivity": "small errors of waits move the share this much",
    "distance": "the share is this far from 0 and 1",
}
