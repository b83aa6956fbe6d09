"""What flows through a system, and how unevenly: worked out once, when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.burstiness import arriving_scvs
from tidings.theory.dispersion import Waits, waits
from tidings.theory.flows import Flows


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """A system, its routes and its rates, from which queues are predicted."""

    system: System
    routes: Routes
    flows: Flows

    @cached_property
    def waits(self) -> Waits:
        """Waits at all stations by dispersion curves, and the streams between them."""
        return waits(self.system, self.routes, self.flows)

    @cached_property
    def scvs(self) -> tuple[tuple[float, ...], ...]:
        """c² of what arrives at every broker's stations, by QNA."""
        return arriving_scvs(self.system, self.routes, self.flows)
