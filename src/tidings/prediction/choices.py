"""What a prediction may be asked for, by name: light to import, so that help can list it."""

from __future__ import annotations

WITHIN = 0.005  # half a percentage point
SECONDS = 60.0  # CPU seconds that the simulator may take, unless told otherwise
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
FORMULAS = ("discipline", "paper")  # of operational analysis: responses of queues
