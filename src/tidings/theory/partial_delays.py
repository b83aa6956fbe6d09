"""What delays share that are worked out rather than written down: parts of the protocol Delay."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tidings.theory.stages import Chain, Floats


class TwoMoments(ABC):
    """A delay X of which E[X] and E[X²] are worked out together."""

    @property
    @abstractmethod
    def moments(self) -> tuple[float, float]:
        """E[X] in seconds and E[X²] in seconds squared."""

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        return self.moments[0]

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared."""
        mean_s, square_s2 = self.moments
        return square_s2 - mean_s**2


class KnownByTransform:
    """A delay without a closed form and without phases: its law comes from its transform."""

    __slots__ = ()

    @property
    def kinked(self) -> bool:
        """Corners there may be, but no closed form either: inversion says how far it is off."""
        return False

    def chain(self) -> Chain | None:
        """None: it has no few phases."""
        return None

    def cdf(self, t_s: Floats) -> Floats | None:
        """None: there is no closed form."""
        return None
