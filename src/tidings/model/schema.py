"""The JSON Schema of the system file, made from the records themselves."""

from __future__ import annotations

from typing import Any

from tidings.model import records
from tidings.model.batches import Batch, Fetch
from tidings.model.behaviour import Channel, Connectivity, DailyRates, Station
from tidings.model.consumers import Consumers, Member, Partitions
from tidings.model.daily_delays import DailyDelays
from tidings.model.laws import law_schema
from tidings.model.publishing import Burst, Publishing
from tidings.model.system import (
    FORMAT_VERSION,
    Broker,
    FailureGroup,
    Publisher,
    Recovery,
    Routing,
    SharedNetwork,
    Subscriber,
    System,
)

RECORDS = (
    Broker,
    Publisher,
    Subscriber,
    Channel,
    Connectivity,
    Consumers,
    Member,
    Partitions,
    Fetch,
    Batch,
    DailyRates,
    DailyDelays,
    Publishing,
    Burst,
    Station,
    Recovery,
    Routing,
    FailureGroup,
    SharedNetwork,
)

# What the parts of distributions, failures, contents and filters mean, wherever they stand.
MEANINGS = {
    "above": "the attribute is greater than this",
    "all": "several tests that must all hold",
    "at_least": "the attribute is this or more",
    "at_most": "the attribute is this or less",
    "availability": "share of time it is up",
    "below": "the attribute is less than this",
    "between": "the attribute lies between these two, both included",
    "contains": "the attribute is a text with this in it",
    "deterministic": "always this time",
    "down": "distribution of the times it is down",
    "edges": "ends of the bins, one more than weights",
    "equals": "the attribute is this",
    "erlang": "so many exponential phases in a row",
    "event": "the attributes of the event",
    "exists": "whether the event has the attribute at all",
    "exponential": "exponential with this mean",
    "gamma": "gamma, by its mean and its shape or scv",
    "generator": "rates between phases, a row for each; what a row lacks to zero ends the time",
    "histogram": "measured: how much lies between which times",
    "hyperexponential": "a mixture of exponentials: a probability and a mean each",
    "independent": "attributes that are drawn independently of each other",
    "initial": "probability to begin in each phase",
    "lognormal": "lognormal, by its mean or median and its scv or sigma",
    "mean": "the mean",
    "median": "the median",
    "mqtt": "a topic that this filter of MQTT wants; + is one level, # at the end any number",
    "mtbf": "mean time up, between a repair and the next failure",
    "mttr": "mean time to repair",
    "nats": "a subject that this pattern of NATS wants; * is one token, > at the end one or more",
    "not": "the attribute is there and is not this, or none of these",
    "one_of": "the attribute is one of these",
    "p": "probability",
    "per": "the time is that of one stored subscription; brokers look at all they store",
    "period": "mean time from one failure to the next",
    "phase_type": "time to leave a chain of exponential phases",
    "prefix": "the attribute is a text that begins with this",
    "quantiles": "times by the share that is shorter, such as 0.5: 10ms",
    "rate": "exponential with this rate",
    "scale": "the scale",
    "scv": "squared coefficient of variation: variance over squared mean",
    "shape": "the shape; for erlang the number of phases",
    "shift": "a constant time that is added",
    "sigma": "standard deviation of the logarithm",
    "size": "size of an event",
    "uniform": "uniform between two times",
    "up": "distribution of the times it is up",
    "value": "a value of the attribute",
    "weibull": "Weibull, by its scale or mean and its shape",
    "weights": "how much lies in each bin",
}


def system_schema() -> dict[str, Any]:
    """Make the JSON Schema (draft 2020-12) of a system file.

    It accepts whatever the reader accepts; what lies between fields (known names, sums, trees) only
    the reader checks.
    """
    schema = records.record_schema(System)
    schema["properties"]["tidings"] = {"const": FORMAT_VERSION, "description": "format version"}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidings system",
        **schema,
        "$defs": {
            "Law": law_schema(),
            **{record.__name__: records.record_schema(record) for record in RECORDS},
        },
    }
    return dict(_described(whole))


def _described(part: Any) -> Any:
    """Add a description to every property in a part of a schema."""
    if isinstance(part, list):
        return [_described(each) for each in part]
    if not isinstance(part, dict):
        return part
    whole = {key: _described(each) for key, each in part.items() if key != "properties"}
    if "properties" in part:
        whole["properties"] = {
            name: _described(
                form if "description" in form else {"description": MEANINGS[name], **form}
            )
            for name, form in part["properties"].items()
        }
    return whole
