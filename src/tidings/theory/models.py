"""Models that theory has, by name: light to import, so that help can list them."""

from __future__ import annotations

QUEUE_MODELS = {
    "law": "the whole distribution of the wait that each stream finds at each broker",
    "gg1": "the wait at each broker taken as constant, its mean by QNA from one number a stream",
    "mm1": "the wait at each broker taken as constant, the mean of an M/M/1 queue",
}
FAULT_MODELS = {
    "exact": "exact wherever that is feasible",
    "paper": "the published formulas: disjoint paths, exponential times, ideal refresh",
}
MODELS = ("law", "exact")  # of queues and failures, whose errors are measured
