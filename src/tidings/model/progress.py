"""How long work says where it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]  # told what is being done, in a few words
