"""What solving a net gives: a row for each place and colour, and one for each queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.shown import Shown
from tidings.petri.cells import NetCells

QUANTILES = (0.5, 0.95, 0.99)


def queueing_places(cells: NetCells, table: pd.DataFrame) -> pd.DataFrame:
    """Make a row for each place with a queue: what it is, and what all its colours add up to."""
    here = table.groupby("place", sort=False)[["throughput_per_s", "population"]].sum()
    own = {
        "place": list(cells.queues),
        "servers": [each.counted_servers for each in cells.queues.values()],
        "discipline": [each.discipline for each in cells.queues.values()],
    }
    sums = here.reindex(own["place"], fill_value=0.0).reset_index(drop=True)
    return pd.DataFrame(own).join(sums)


@dataclass(frozen=True, kw_only=True, repr=False)
class NetOutcome(Shown):
    """Means and standard errors in the steady state of a net.

    ``cells``: throughput, population, residence time and age of tokens that leave, by place and
    colour; ``places``: utilisation of queueing places, residence and age of tokens of any colour.
    """

    _table = "places"
    _columns = ("place", "utilisation")

    cells: pd.DataFrame
    places: pd.DataFrame
    provenance: Mapping[str, Any]

    def cell(self, place: str, colour: str) -> pd.Series[Any]:
        """Give the row of one place and colour."""
        rows = self.cells[(self.cells["place"] == place) & (self.cells["colour"] == colour)]
        if len(rows) != 1:
            raise InvalidInputError(f"no tokens of the colour '{colour}' reach '{place}'")
        return rows.iloc[0]

    def place(self, name: str) -> pd.Series[Any]:
        """Give the row of one queueing place."""
        rows = self.places[self.places["place"] == name]
        if len(rows) != 1:
            raise InvalidInputError(f"'{name}' is not a place with a queue")
        return rows.iloc[0]

    def to_document(self) -> dict[str, Any]:
        """Give the outcome as plain data for JSON."""
        return {
            "provenance": dict(self.provenance),
            "places": self.places.to_dict("records"),
            "cells": self.cells.to_dict("records"),
        }
