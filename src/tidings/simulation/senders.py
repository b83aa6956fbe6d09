"""Publishers that full buffers block, or that send in batches, for the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.records import make_records, more_records
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.simulation import kernel_layout as layout

if TYPE_CHECKING:
    from tidings.simulation.groups import Group

_KINDS = {"limits": layout.LIMIT, "senders": layout.SENDER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Senders:
    """How publishers send, and the buffers that block them."""

    system: System
    limits: tuple[tuple[str, int], ...]  # a broker or a group, and its position
    of_row: tuple[tuple[int, ...], ...]  # the limits on the way of the events of each row

    @property
    def matter(self) -> bool:
        """Whether any publisher is blocked at times, or sends in batches."""
        return bool(self.limits) or any(each.batch is not None for each in self.system.publishers)

    @property
    def pausing(self) -> bool:
        """Whether a publisher that is blocked makes fewer events than it would."""
        return bool(self.limits) and any(each.pauses for each in self.system.publishers)

    def tables(self, before: Mapping[str, Any], groups: Sequence[Group]) -> dict[str, Any]:
        """Make the tables of limits and senders, and of those that they are of."""
        first = np.concatenate([[0], np.cumsum([len(each) for each in self.of_row])])
        lists = {
            "limits_first": first.astype(np.int64),
            "limits_of": np.array([n for each in self.of_row for n in each], dtype=np.int64),
        }
        if not self.matter:
            return lists | {name: make_records(kind, []) for name, kind in _KINDS.items()}
        changed = {name: before[name].copy() for name in ("publishers", "stations", "groups")}
        capacities = []
        for number, (what, position) in enumerate(self.limits):
            if what == "broker":
                broker = self.system.brokers[position]
                station = before["places"]["first_station"][position]
                changed["stations"]["limit"][station] = 1 + number
                capacities.append((broker.servers + (broker.buffer or 0),))
            else:
                changed["groups"]["limit"][position] = 1 + number
                capacities.append((groups[position].consumers.buffer or 0,))
        places: list[tuple[int, ...]] = []
        senders: list[tuple[Any, ...]] = []
        for index, publisher in enumerate(self.system.publishers):
            place = len(before["places"]) + len(places)
            waits_at, gate = int(changed["publishers"]["waits_at"][index]), -1
            if waits_at >= 0:
                gate = int(before["places"]["first_station"][waits_at])
            else:
                changed["publishers"]["waits_at"][index] = place
            batch = publisher.batch
            size, linger_s = (1, 0.0) if batch is None else (batch.size, batch.linger_s)
            places.append((0, 0, layout.TO_SENDER, index))
            senders.append((place, gate, size, linger_s, publisher.pauses, -1, -1, -1, -1, -1, -1))
        places.append((0, 0, layout.TO_BLOCKED, -1))
        joined = more_records(before["places"], layout.PLACE, places)
        own = {"limits": capacities, "senders": senders}
        own_tables = {name: make_records(kind, own[name]) for name, kind in _KINDS.items()}
        return lists | changed | own_tables | {"places": joined}

    def name_of(self, number: int, groups: Sequence[Group]) -> str:
        """Give the name of the broker or subscriber whose buffer a limit is."""
        what, position = self.limits[number]
        if what == "broker":
            return self.system.brokers[position].name
        return groups[position].subscriber.name


def find_senders(
    system: System,
    routes: Routes,
    reached: NDArray[np.int32],
    groups: Sequence[Group],
    chosen: Sequence[int],
) -> Senders:
    """Find the buffers that block publishers, and the rows of events that each is on the way of.

    ``reached`` is the cell of each [row, broker], −1 where its events do not come.
    """
    limits: list[tuple[str, int]] = []
    met: list[Any] = []
    classes = np.array([row.content_class for row in routes.rows])
    for index, broker in enumerate(system.brokers):
        if broker.blocks and broker.discipline != "infinite-server":
            limits.append(("broker", index))
            met.append(reached[:, index] >= 0)
    for index, group in enumerate(groups):
        if group.consumers.blocks:
            subscriber = int(chosen[group.receiver])
            home = routes.home_of_subscriber[subscriber]
            limits.append(("group", index))
            met.append((reached[:, home] >= 0) & routes.wanted_by(subscriber)[classes])
    return Senders(
        system=system,
        limits=tuple(limits),
        of_row=tuple(
            tuple(number for number, rows in enumerate(met) if rows[row])
            for row in range(len(routes.rows))
        ),
    )
