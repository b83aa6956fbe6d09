"""What a prediction may be asked for: light to import, so that help can list it."""

from __future__ import annotations

WITHIN = 0.005  # half a percentage point
SECONDS = 60.0  # CPU seconds that the simulator may take, unless told otherwise
