from __future__ import annotations

import numpy as np
import pytest

from tidings.theory.churn.tilting import Tilted
from tidings.theory.faults.buffer_delays import DenseWait

# Round and round three phases, out of the last: its own times are complex numbers.
RING = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.9, 0.0, -1.0]])


@pytest.mark.parametrize("per_s", [0.02, 1.0])
def test_moments_of_a_weighted_wait_of_phases_are_slopes_of_its_transform(per_s):
    assert np.abs(np.linalg.eigvals(RING).imag).max() > 0.5
    wait = DenseWait(initial=np.array([0.1, 0.05, 0.1]), generator=RING, atom=0.75)
    found = Tilted(delay=wait, per_s=per_s)
    inverse, leaving = np.linalg.inv(per_s * np.eye(3) - RING), -RING.sum(axis=1)
    mass = wait.atom + wait.initial @ inverse @ leaving
    mean_s = wait.initial @ inverse @ inverse @ leaving / mass
    square_s2 = 2.0 * wait.initial @ inverse @ inverse @ inverse @ leaving / mass
    assert found.mass == pytest.approx(mass, rel=1e-12)
    assert found.mean_s == pytest.approx(mean_s, rel=1e-12)
    assert found.variance_s2 == pytest.approx(square_s2 - mean_s**2, rel=1e-11)
