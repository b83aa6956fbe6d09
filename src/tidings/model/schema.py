"""The JSON Schema of the system file, made from the records themselves."""

from __future__ import annotations

from typing import Any

from tidings.model import records
from tidings.model.behaviour import Channel, Connectivity, DailyRates, Station
from tidings.model.laws import law_schema
from tidings.model.publishing import Burst, Publishing
from tidings.model.system import (
    FORMAT_VERSION,
    Broker,
    FailureGroup,
    Network,
    Publisher,
    Recovery,
    Routing,
    Subscriber,
    System,
)

RECORDS = (
    Broker,
    Publisher,
    Subscriber,
    Channel,
    Connectivity,
    DailyRates,
    Publishing,
    Burst,
    Station,
    Recovery,
    Routing,
    FailureGroup,
    Network,
)


def system_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a system file.

    It accepts whatever the reader accepts; what lies between fields (known names, sums, trees) only
    the reader checks.
    """
    schema = records.record_schema(System)
    schema["properties"]["tidings"] = {"const": FORMAT_VERSION, "description": "format version"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidings system",
        **schema,
        "$defs": {
            "Law": law_schema(),
            **{record.__name__: records.record_schema(record) for record in RECORDS},
        },
    }
