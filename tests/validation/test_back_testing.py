"""Where a window is parted; the test itself runs where the traces for it are (characterisation)."""

from __future__ import annotations

import pytest

from tidings.errors import InvalidTracesError
from tidings.traces.window import TraceWindow
from tidings.validation.back_testing import split


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_parts_too_small_to_tell_are_refused(share):
    with pytest.raises(InvalidTracesError, match=r"wants 0\.1 to 0\.9"):
        split(TraceWindow(from_ns=0, until_ns=100), share)
