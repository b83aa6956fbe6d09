"""Tables of the kernel's records, filled from rows."""

from __future__ import annotations

from typing import Any

import numpy as np


def make_records(kind: np.dtype[Any], rows: list[tuple[Any, ...]]) -> Any:
    """Records from their first fields; what is not given (counts) begins at zero."""
    records = np.zeros(len(rows), dtype=kind)
    assert kind.names is not None
    for name, values in zip(kind.names, zip(*rows, strict=True), strict=False):
        records[name] = values
    return records
