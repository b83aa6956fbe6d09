"""Ratios of sums over independent replications, with their standard errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from tidings.model.arrays import Floats
from tidings.model.standard_errors import share_se


class Ratio:
    r"""Ratios of two sums, element by element, with the standard error over replications.

    Over n replications :math:`\hat r = \sum x_i / \sum w_i` and

    .. math:: \mathrm{se}^2 = \frac{n}{n-1} \frac{\sum (x_i - \hat r w_i)^2}{(\sum w_i)^2}

    Only five sums are kept, however many replications there are.
    """

    def __init__(self, size: int) -> None:
        self.replications = 0
        self.x, self.w = np.zeros(size), np.zeros(size)
        self._xx, self._xw, self._ww = np.zeros(size), np.zeros(size), np.zeros(size)

    def add(self, x: ArrayLike, w: ArrayLike) -> None:
        """One replication more."""
        top, bottom = np.asarray(x, dtype=np.float64), np.asarray(w, dtype=np.float64)
        self.replications += 1
        self.x += top
        self.w += bottom
        self._xx += top * top
        self._xw += top * bottom
        self._ww += bottom * bottom

    @property
    def value(self) -> Floats:
        """The ratios; NaN where there is nothing to divide by."""
        return _divided(self.x, self.w)

    @property
    def standard_error(self) -> Floats:
        """Of the ratios; NaN with fewer than two replications."""
        n = self.replications
        if n < 2:
            return np.full(self.x.size, np.nan)
        r = self.value
        squares = np.maximum(self._xx - 2.0 * r * self._xw + r * r * self._ww, 0.0)
        return np.sqrt(n / (n - 1) * squares) / np.where(self.w > 0, self.w, np.nan)

    @property
    def share_standard_error(self) -> Floats:
        """Of the ratios where they are shares: at least that of independent trials.

        Where hardly any trial failed, replications hardly differ, which proves little.
        """
        error = self.standard_error
        return np.where(np.isnan(error), np.nan, np.fmax(error, share_se(self.x, self.w)))

    def half_widths(self, confidence: float = 0.95, *, errors: Floats | None = None) -> Floats:
        """Half the confidence interval of each share (Student's t); NaN where it is not known.

        From standard errors if given, else those of shares.
        """
        if self.replications < 2:
            return np.full(self.x.size, np.nan)
        t = float(special.stdtrit(self.replications - 1, 0.5 + confidence / 2))
        return t * (self.share_standard_error if errors is None else errors)

    def relative_half_width(self, chosen: NDArray[np.bool_], confidence: float = 0.95) -> float:
        """Half the widest confidence interval of the chosen ratios, as a share of each."""
        if self.replications < 2 or not chosen.any():
            return math.nan if self.replications < 2 else 0.0
        t = float(special.stdtrit(self.replications - 1, 0.5 + confidence / 2))
        return t * float(np.max(self.standard_error[chosen] / self.value[chosen]))


def _divided(x: Floats, w: Floats) -> Floats:
    ratios: Floats = np.divide(x, w, out=np.full(x.shape, np.nan), where=w > 0)
    return ratios
