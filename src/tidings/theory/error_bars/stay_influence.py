r"""What small changes make of what subscribers get that stay only for a time.

Of a stream with delay X, certain and random, an event is notified with the probability w(X): the
subscription was known where they met and the subscriber is still there. Three sums, of H(X) w(X)
with H(t) = 1{t ≤ lifetime}, 1 and t, give the share on time, that which arrives and its mean delay.
A change of a stage alters the distribution of X, in which the sums are linear, and w, by what it
does to the times of subscription A and event B until they meet: with U = (A − B)⁺ and S the
survival of the residual stay, w(t) = E[S(t + U)] changes by E[S'(t + U) (δA − δB); A > B], where a
quantile q of A moves by δA = −δP[A ≤ q]/density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidings.model.arrays import Bools, Complexes, Floats
from tidings.theory.delay.delays import Delays, stack
from tidings.theory.delay.paths import Paths
from tidings.theory.error_bars.changes import (
    Changes,
    Response,
    StageOrder,
    node_weights,
    stage_order,
    stages_of_streams,
)
from tidings.theory.peers.stay_weights import Meeting, equally_likely
from tidings.theory.repairs.schemes import FailingPaths

if TYPE_CHECKING:
    from tidings.theory.network.arriving import Leaving

_VALUES = 32  # equally likely times of subscription and of event
_LATENESS = 17  # values of how late a subscription comes, between which sums are taken as straight
_SHIFT = 1e-3  # of the lifetime, by which it is cut to see what that takes


def responses_of_stays(
    leaving: Leaving, paths: Paths | FailingPaths, groups: Sequence[Changes]
) -> list[Response]:
    """Compute by how much groups of changes alter what subscribers get that come and go."""
    whole, met = leaving.staying(paths, leaving.rows), stages_of_streams(leaving)
    order, came = stage_order(leaving.came.network), leaving.came
    sums = np.zeros((leaving.rows.size, 3))
    by_change = [np.zeros((leaving.rows.size, 3, len(changes.each))) for changes in groups]
    for place, row in enumerate(leaving.rows.tolist()):
        stream = _Stream(
            delay=whole.take([place]),
            meeting=leaving.meeting(paths, row),
            lifetimes_s=leaving.lifetimes_s[int(leaving.lifetime_codes[place])],
            publisher=int(came.publishers[row]),
            order=order,
        )
        sums[place] = stream.sums
        for by, changes in zip(by_change, groups, strict=True):
            by[place] = stream.by(changes, met[place, changes.stages])
    return [
        _response(whole, sums, by, changes, met[:, changes.stages])
        for by, changes in zip(by_change, groups, strict=True)
    ]


def _response(whole: Delays, sums: Floats, by: Floats, changes: Changes, met: Bools) -> Response:
    """Put shares and mean delays together from the three sums [row, 3] and their changes."""
    lost = met * changes.others[0]
    arrive = np.maximum(sums[:, 1], 1e-300)[:, None]
    on_time, delay_s = whole.survival * sums[:, 0], sums[:, 2] / arrive[:, 0]
    by_parameter = changes.by_parameter
    on_time_by = whole.survival[:, None] * by[:, 0] + on_time[:, None] * lost
    return Response(
        on_time=on_time,
        survival=whole.survival * sums[:, 1],
        delay_s=delay_s,
        on_time_by=on_time_by @ by_parameter,
        survival_by=(by[:, 1] / arrive + lost) @ by_parameter,
        delay_by_s=((by[:, 2] - delay_s[:, None] * by[:, 1]) / arrive) @ by_parameter,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stream:
    """One stream to subscribers that stay only for a time, cut into cells of its delay.

    The first cell is what takes no random time at all, the last what takes longer than the grid.
    """

    delay: Delays  # of one stream, to subscribers that never go
    meeting: Meeting
    lifetimes_s: Floats  # equally likely
    publisher: int
    order: StageOrder

    @cached_property
    def _ends_s(self) -> Floats:
        """[end of a cell]: of the whole delay."""
        fine_s = self.delay.grid.fine_s
        return float(self.delay.shift_s[0]) + np.concatenate([[0.0], fine_s, 3.0 * fine_s[-1:]])

    @cached_property
    def _times_s(self) -> Floats:
        """[cell]: its middle."""
        return 0.5 * (self._ends_s[1:] + self._ends_s[:-1])

    @cached_property
    def _masses(self) -> Floats:
        """[cell]: how likely the delay lies in it."""
        fine_s = self.delay.grid.fine_s
        below = self.delay.distributions.random_at(fine_s[None, :], np.zeros(1, dtype=np.int64))[0]
        below[0] = self.delay.atom[0]
        return np.diff(below, prepend=0.0, append=1.0)

    def _on_time(self, later_s: float) -> Floats:
        """Compute the part of a cell within lifetimes if all take ``later_s`` longer, [cell]."""
        low, high = self._ends_s[:-1, None] + later_s, self._ends_s[1:, None] + later_s
        width = np.maximum(high - low, 1e-12 * high + 1e-300)
        parts: Floats = np.clip((self.lifetimes_s - low) / width, 0.0, 1.0).mean(axis=1)
        return parts

    @cached_property
    def _counted(self) -> Floats:
        """[3, cell]: what counts of each: on time, all, the time it takes."""
        return np.stack([self._on_time(0.0), np.ones(self._times_s.size), self._times_s])

    @cached_property
    def _still_there(self) -> Floats:
        return self.meeting.still_there(self._times_s)

    @cached_property
    def sums(self) -> Floats:
        """[3]: share on time, share that arrives, its delays in seconds, of what nothing loses."""
        sums: Floats = (self._counted * self._still_there) @ self._masses
        return sums

    # ---- what changes them -----------------------------------------------------------------------

    def by(self, changes: Changes, met: Bools) -> Floats:
        """Compute how much the sums change, [3, change]; ``met``: which stages lie on the path."""
        answer = np.zeros((3, len(changes.each)))
        if not changes.each:
            return answer
        _, shifts_s, _, _, stays = changes.others
        nodes, by_shift = self._by_delay
        answer[:, met] = (nodes @ changes.values[met].T).real + np.outer(by_shift, shifts_s[met])
        nodes, by_shift, before = self._by_meeting
        near = np.flatnonzero(np.any(before[:, changes.stages], axis=0))
        each = np.tensordot(nodes, changes.values[near], axes=(2, 1)).real
        each += by_shift[:, :, None] * shifts_s[near]
        answer[:, near] += np.einsum("ijk,ik->jk", each, before[:, changes.stages[near]])
        if np.any(stays):
            answer += np.outer(self._by_stays, stays)
        return answer

    @cached_property
    def _by_delay(self) -> tuple[Complexes, Floats]:
        """[3, node] and [3]: what relative changes of the transform do, and a longer shift."""
        counted = self._counted * self._still_there
        parts = -np.diff(counted, axis=1)
        parts[:, 1] += parts[:, 0]  # what takes no time at all changes as what takes hardly any
        fine_s = np.tile(self.delay.grid.fine_s[1:], (3, 1))
        nodes = node_weights(self.delay.grid, fine_s, parts[:, 1:]) * self.delay.values[0]
        gone = self._density(self._times_s, self.meeting.late_s) @ self.meeting.weights
        by_shift = -(self._counted * gone) @ self._masses
        step_s = _SHIFT * float(self.lifetimes_s.mean())
        cut = (self._on_time(step_s) - self._on_time(0.0)) / step_s
        by_shift[0] += (cut * self._still_there) @ self._masses
        by_shift[2] += self.sums[1]
        return nodes, by_shift

    def _density(self, times_s: Floats, late_s: Floats) -> Floats:
        """Compute how likely a subscriber leaves just so long after, per second, [time, value]."""
        after_s = times_s[:, None] + late_s
        density: Floats = (1.0 - self.meeting.stays.cdf(after_s)) / self.meeting.stays.mean_s
        return density

    @cached_property
    def _by_stays(self) -> Floats:
        """[3]: what stays do that are longer, relatively."""
        times_s, late_s = self._times_s, self.meeting.late_s
        longer = self._density(times_s, late_s) * (times_s[:, None] + late_s)
        by_stays: Floats = (self._counted * (longer @ self.meeting.weights)) @ self._masses
        return by_stays

    @cached_property
    def _by_meeting(self) -> tuple[Complexes, Floats, Bools]:
        """What stages do by the times of subscription and of event until they meet.

        [time, 3, node]: what relative changes of transforms do, [time, 3]: what a longer shift
        does, [time, stage]: which stages a time is made of. Times are those of the subscription to
        each place where the two may meet, then those of the event.
        """
        meeting = self.meeting
        both = [each.take(meeting.places) for each in (meeting.spreading, meeting.before)]
        one, other = (equally_likely(each, _VALUES) for each in both)
        gaps_s = one[:, :, None] - other[:, None, :]
        late_s = np.linspace(0.0, max(float(gaps_s.max()), 1e-9), _LATENESS)
        sums = -(self._counted * self._masses) @ self._density(self._times_s, late_s)
        each = np.stack([np.interp(gaps_s, late_s, row) for row in sums], axis=1)
        each *= (gaps_s > 0.0)[:, None]
        each *= meeting.chances[meeting.places][:, None, None, None] / _VALUES**2
        by_value = np.concatenate([each.sum(axis=3), -each.sum(axis=2)])  # [time, 3, value]
        delays = stack(both)
        random_s = np.concatenate([one, other]) - delays.shift_s[:, None]
        parts = -by_value * np.gradient(random_s, 1.0 / _VALUES, axis=1)[:, None]
        at_s = np.repeat(random_s, 3, axis=0)
        nodes = node_weights(delays.grid, at_s, parts.reshape(len(at_s), -1))
        nodes = nodes.reshape(len(delays), 3, -1) * delays.values[:, None]
        return nodes, by_value.sum(axis=2), self._stages_before

    @cached_property
    def _stages_before(self) -> Bools:
        """[time, stage]: those of subscriptions to each place, then those of events."""
        order, places = self.order, self.meeting.places
        arcs = np.array(self.meeting.arcs, dtype=np.int64)
        before = np.zeros((2, places.size, order.count), dtype=np.bool_)
        before[0, :, order.exit] = True
        before[1][:, [self.publisher, order.entry + self.publisher]] = True
        for index, place in enumerate(places.tolist()):
            before[0, index, order.arc + (arcs[place:] ^ 1)] = True
            before[1, index, order.arc + arcs[:place]] = True
            before[1, index, order.publishers + arcs[:place]] = True
        return before.reshape(-1, order.count)
