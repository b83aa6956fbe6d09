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
    "moving_and_failing",
    "own_churn",
    "any_churn",
    "own_queue",
)
# 0 or 1: theory is never believed where one is 1. A broker that is busier while a subscriber is
# there than on average; streams of publishers that are not Poisson and come over a random delay of
# their own; a subscriber's own queue of what is not Poisson.
NEVER_OF_SYSTEMS = ("displaced_streams", "uneven_own_queue")
NEVER_BELIEVED = ("load_by_presence", *NEVER_OF_SYSTEMS)
FEATURES = (*ALONG, *FAILING, *OF_PEERS, *NEVER_OF_SYSTEMS)
# How much a share moves if waits that are not exact are a step of the grid longer; how far it is
# from 0 or 1.
OF_SHARES = ("sensitivity", "distance")
