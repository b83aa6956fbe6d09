"""What was used to get at the numbers, noted while ways are worked out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FITTED = "times up or down fitted by phases"
SHARES, CAUSES, LAWS = "shares on time", "causes of loss", "laws"  # what can be off


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """For each method how many ways used it, and how far the worst of them can be off.

    An approximation whose error nobody knows has none (None), which is not the same as 0. Errors
    are of shares on time, unless a method is told to be off in something else only.
    """

    used: dict[str, tuple[int, float | None]] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)

    def add(self, method: str, error: float | None, of: str = SHARES) -> None:
        """One more way by this method."""
        self.of[method] = of
        count, worst = self.used.get(method, (0, 0.0))
        known = None if error is None or worst is None else max(worst, error)
        self.used[method] = count + 1, known

    def rows(self) -> list[dict[str, Any]]:
        """The methods as plain data; an error of None is not known."""
        return [
            {"method": method, "ways": count, "error": worst, "of": self.of[method]}
            for method, (count, worst) in self.used.items()
        ]
