"""The recovery schemes by name, each turning the stages of a way into a way that can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tidings.theory.faults.buffer_delays import TabulatedWait, buffer_delay
from tidings.theory.faults.buffered_ways import (
    acknowledged,
    buffered_way,
    stationary_wait,
    told_wait,
)
from tidings.theory.faults.bypassing_ways import (
    Detours,
    approximate_wait,
    bypassing_buffered_way,
    bypassing_way,
    detours,
    exact_wait,
    wait_from,
)
from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.connectivity import TooWideError
from tidings.theory.faults.exposure import Pieces, exposed, sent_again
from tidings.theory.faults.notes import CAUSES, FITTED, Notes
from tidings.theory.faults.other_homes import OtherHome, helped_per_s
from tidings.theory.faults.reachability import Reachability, Reached, lying_between
from tidings.theory.faults.refresh import Passed, Refresh, bounded_passed, exact_passed
from tidings.theory.faults.refresh_chain import (
    JOINED,
    UP,
    RefreshChain,
    Refreshes,
    forgetful_on_average,
    passing_chain,
    refresh_chain,
)
from tidings.theory.faults.refreshed_buffers import refreshed_wait
from tidings.theory.faults.refreshed_reachability import (
    Known,
    followed_passed,
    followed_shares,
    meeting,
    refreshed_at_least,
    refreshed_shares,
)
from tidings.theory.faults.static_ways import (
    checked_way,
    lost_for_good,
    refreshed_checks,
    up_checks,
)
from tidings.theory.faults.waiting import Wait
from tidings.theory.stages import NOTHING, Floats, Stage

BUFFERING = ("buffering", "bypass-buffering")
BUSY = 0.5  # share of the time up from which on what failures do to queues is worth a word
NOT_TOLD_APART = "of path_down and not_restored only the sum is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What fails in a system and what is done about it."""

    scheme: str
    published: bool  # by the published formulas, for reproducing them
    components: Components
    reachability: Reachability
    loads: Floats  # ρ of every broker, while it is up and nothing has been kept for it
    refresh: Refresh | None = None  # None: subscriptions are back at the instant of recovery
    notes: Notes = field(default_factory=Notes)

    def way(self, path: Path, pieces_of: Pieces, others: Sequence[OtherHome] = ()) -> Stage:
        """What becomes of an event that is to go this way.

        ``others`` are homes that want the same event and refresh brokers of the way too.
        """
        if not self.published:  # which take no time on the way into account
            self._note_queues(path)
            pieces_of = self._exposed(path, pieces_of)
        return SCHEMES[self.scheme](self, _Way(path=path, pieces_of=pieces_of, others=others))

    def _note_queues(self, path: Path) -> None:
        """What failures do to the queues of a way and predictions leave out, where it shows."""
        if not self.buffering and self.relieved(path.brokers):
            self.notes.add("queues as busy as when nothing fails", None)
        if self.buffering and any(self.is_backlogged(each) for each in path.brokers[1:]):
            self.notes.add("backlogs that a repair sets free at once: left out", None)

    def _exposed(self, path: Path, pieces_of: Pieces) -> Pieces:
        if self.buffering:
            again = sent_again(self.components, path, pieces_of(path))
            if again > 0.0:
                how = "what fails while it serves or carries an event after its first broker"
                around = self.scheme != "buffering" and self.has_way_around(path)
                self.notes.add(f"{how}: left out", None if around else again)
        return exposed(self.components, pieces_of, buffering=self.buffering)

    def busy(self, broker: int) -> float:
        """The share of its time up that a broker must work to catch up with what was kept."""
        return float(self.loads[broker]) / max(self.up_share(broker), 1e-300)

    def is_backlogged(self, broker: int) -> bool:
        """Whether what is kept while a broker is down keeps it so busy that it shows."""
        return self.up_share(broker) < 1.0 and self.busy(broker) >= BUSY

    def relieved(self, brokers: Sequence[int]) -> list[int]:
        """Those of some brokers that are so busy that it shows what failures keep from them."""
        return [each for each in brokers if float(self.loads[each]) >= BUSY]

    def up_share(self, broker: int) -> float:
        """P[a broker is up]."""
        return self.components.all_up(self.components.of_broker[broker])

    def sent(self, pieces: Sequence[Stage]) -> list[Stage]:
        """The stages of a way as events are sent over it: with buffers, again if lost by chance."""
        return acknowledged(pieces) if self.buffering else list(pieces)

    def held_up(self, path: Path) -> Stage:
        """How long a new subscription waits for what is down, on its way from its home.

        Where brokers keep no events, an event that finds its way up finds the subscription there:
        it has waited for no more than the event needs. So it costs nothing more.
        """
        if not self.buffering:
            return NOTHING
        if self.scheme != "buffering" and self.has_way_around(path):
            self.notes.add("new subscriptions wait for what is down on the usual way", None)
        if self.refresh is not None:
            self.notes.add("new subscriptions wait for what is down, not for a refresh", None)
        waiting = buffer_delay(told_wait(self.components, path))
        return NOTHING if waiting is None else Stage(delays=(waiting,))

    @property
    def buffering(self) -> bool:
        """Whether brokers keep events until the next one has them."""
        return self.scheme in BUFFERING

    def note_exact(self, what: str) -> None:
        """That nothing was approximated, unless times up or down were fitted."""
        if FITTED in self.notes.used:
            self.notes.add(f"{what}: as times were fitted", None)
        else:
            self.notes.add(f"{what}: exact", 0.0)

    def home_up(self, path: Path) -> float:
        """P[the first broker of a way is up]."""
        return self.up_share(path.brokers[0])

    def forgets(self, path: Path) -> bool:
        """Whether a broker of a way can lose subscriptions: by a crash, or as they time out."""
        times_out = self.refresh is not None and self.refresh.timeout_s is not None
        return times_out or any(self.components.of_broker[each] for each in path.brokers)

    def reached(self, path: Path) -> Reached:
        """P[the ends of a way can reach each other over any way], tables apart."""
        found = self.reachability
        answer = found.disjoint_paths(path) if self.published else found.between(path)
        self.notes.add(f"connectivity: {answer.method}", answer.error)
        return answer

    def has_way_around(self, path: Path) -> bool:
        """Whether there is any other way between the ends of a way."""
        return len(lying_between(self.reachability.network, path)) > len(path.links)

    def helped_per_s(self, way: _Way) -> tuple[float, ...]:
        """How often others refresh each broker of a way."""
        assert self.refresh is not None
        return helped_per_s(self.components, way.path, way.others, self.refresh.every_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """The usual way of some events, the stages of any way, and who else wants them."""

    path: Path
    pieces_of: Pieces
    others: Sequence[OtherHome]


def _none(known: Faults, way: _Way) -> Stage:
    return checked_way(way.pieces_of(way.path), lost_for_good(known.components, way.path))


def _periodic(known: Faults, way: _Way) -> Stage:
    pieces = way.pieces_of(way.path)
    if known.refresh is None or not known.forgets(way.path):
        return checked_way(pieces, up_checks(known.components, way.path))
    helped = known.helped_per_s(way)
    passed = _passed(known, way, known.refresh, helped)
    if passed is None:
        passed = bounded_passed(known.components, way.path, known.refresh, helped)
        known.notes.add("refresh: middle of two bounds", passed.off)
        known.notes.add(f"refresh: {NOT_TOLD_APART}", None, CAUSES)
    elif any(helped):
        known.notes.add("refresh: those of other homes taken as a random stream", None)
        _note_others_timeouts(known)
    else:
        known.note_exact("refresh")
    return checked_way(pieces, refreshed_checks(passed))


def _passed(known: Faults, way: _Way, refresh: Refresh, helped: tuple[float, ...]) -> Passed | None:
    """The checks of a way from refresh to refresh; None where its states are too many."""
    alone = not any(helped) and not known.components.fail_together(way.path)
    found = exact_passed(known.components, way.path, refresh, helped) if alone else None
    if found is not None:
        return found
    refreshes = Refreshes(own=refresh, helped_per_s=helped)
    chain = passing_chain(known.reachability.network, way.path, refreshes)
    if chain is not None:
        return followed_passed(chain)
    return None if alone else exact_passed(known.components, way.path, refresh, helped)


def _buffering(known: Faults, way: _Way) -> Stage:
    waiting = _wait(known, way)
    return buffered_way(known.components, way.path, way.pieces_of(way.path), waiting)


def _wait(known: Faults, way: _Way) -> Wait | TabulatedWait:
    """The wait of an event whose home is up, on its usual way."""
    components = known.components
    if known.refresh is not None:
        refreshes = Refreshes(own=known.refresh, helped_per_s=known.helped_per_s(way))
        chain = refresh_chain(known.reachability.network, way.path, refreshes)
        if chain is not None:
            _note_refreshes(known, "buffers", chain)
            return refreshed_wait(chain)
        _note_exponential(known, "buffers")
        components = forgetful_on_average(components, way.path, refreshes)
    found = stationary_wait(components, way.path)
    for how in found.simplified:
        known.notes.add(f"buffers: {how}", None)
    if not found.simplified and known.refresh is None:
        known.note_exact("buffers")
    return found.wait


def _note_refreshes(known: Faults, where: str, chain: RefreshChain) -> None:
    """What was approximated where states are followed from refresh to refresh."""
    if chain.surroundings.reach == UP:
        known.notes.add(f"{where}: refreshes taken to reach all brokers that are up", None)
    elif chain.refreshes.streams:
        known.notes.add(f"{where}: refreshes of other homes taken as a random stream", None)
        _note_others_timeouts(known)
    else:
        error = None if FITTED in known.notes.used else 0.0
        known.notes.add(f"{where}: followed from refresh to refresh", error)


def _note_others_timeouts(known: Faults) -> None:
    """That what other homes have told a broker is taken to time out with the home's own."""
    if known.refresh is not None and known.refresh.timeout_s is not None:
        how = f"subscriptions of several homes taken to time out together: {NOT_TOLD_APART}"
        known.notes.add(how, None, CAUSES)


def _note_exponential(known: Faults, where: str) -> None:
    """That states are too many to be followed from refresh to refresh."""
    assert known.refresh is not None
    left_out = "" if known.refresh.timeout_s is None else ", time-outs left out"
    known.notes.add(f"{where}: the wait for a refresh taken as exponential{left_out}", None)


def _bypass(known: Faults, way: _Way) -> Stage:
    if not known.has_way_around(way.path):
        return _periodic(known, way)
    graph = known.reachability.network
    home = known.home_up(way.path)
    if known.refresh is None:
        reached = known.reached(way.path).share
        shares = Known(reached, home - reached)
    else:
        shares = _known(known, way, known.refresh)
    if any("link" in each.lost for each in way.pieces_of(way.path)):
        known.notes.add("lost on a link before being cut off: told as path_down", None, CAUSES)
    ways = detours(graph, way.path, way.pieces_of).ways
    return bypassing_way(ways, home, shares, way.pieces_of)


def _known(known: Faults, way: _Way, refresh: Refresh) -> Known:
    """Whether an event gets through, or is cut off, before it meets a broker that forgot."""
    graph, helped = known.reachability.network, known.helped_per_s(way)
    refreshes = Refreshes(own=refresh, helped_per_s=helped, any_way=True)
    chain = refresh_chain(graph, way.path, refreshes)
    if chain is not None and chain.surroundings.reach == JOINED:
        _note_refreshes(known, "refresh", chain)
        return followed_shares(chain)
    timeout_s = refresh.timeout_s
    left_out = timeout_s is not None and timeout_s > refresh.every_s
    how = ", time-outs left out" if left_out else ""
    known.notes.add(f"refresh: taken to reach all brokers that are up{how}", None)
    with suppress(TooWideError):
        found = refreshed_shares(graph, way.path, refresh, helped)
        known.notes.add("connectivity: exact", 0.0)
        return found
    reached = known.reached(way.path).share
    return refreshed_at_least(graph, way.path, refresh, helped, reached)


def _bypass_buffering(known: Faults, way: _Way) -> Stage:
    if not known.has_way_around(way.path):
        return _buffering(known, way)
    around = detours(known.reachability.network, way.path, way.pieces_of)
    if around.survives < 1.0:
        known.notes.add("chance losses on ways around: the same on all of them", around.spread)
    waiting = None
    if not known.published:
        with suppress(TooWideError):
            waiting = _wait_beside(known, way, around)
    home = known.home_up(way.path)
    if waiting is None:
        waiting = _published_wait(known, way, around)
        how = "buffers beside ways around: as if the usual way alone were down"
        # Whatever the lifetime, between what gets through at once and all that is ever sent.
        known.notes.add(how, home * (1.0 - waiting.atom))
    return bypassing_buffered_way(around, way.path, home, waiting, way.pieces_of)


def _wait_beside(known: Faults, way: _Way, around: Detours) -> Wait | TabulatedWait | None:
    """The wait given the real partition at publication; None where that is too large."""
    graph, path = known.reachability.network, way.path
    if known.refresh is None:
        return _wait_in_partition(known, path, around)
    refreshes = Refreshes(own=known.refresh, helped_per_s=known.helped_per_s(way), any_way=True)
    chain = refresh_chain(graph, path, refreshes)
    if chain is not None:
        _note_refreshes(known, "buffers beside ways around", chain)
        return refreshed_wait(chain, meeting(chain).waits(around.survives))
    _note_exponential(known, "buffers beside ways around")
    forgets = forgetful_on_average(known.components, path, refreshes)
    return exact_wait(replace(graph, components=forgets), path, around.survives)


def _wait_in_partition(known: Faults, path: Path, around: Detours) -> Wait | None:
    """The same where brokers do not forget: exactly, or from random states of the network."""
    try:
        found = exact_wait(known.reachability.network, path, around.survives)
        if found is not None:
            known.note_exact("buffers beside ways around")
        return found
    except TooWideError:
        sampled = known.reachability.sampled_cut_off(path, around.survives)
        if sampled is None:
            return None
        start, error = sampled
        found = wait_from(known.reachability.network, path, start)
        if found is not None:
            known.notes.add("buffers beside ways around: sampled", error)
        return found


def _published_wait(known: Faults, way: _Way, around: Detours) -> Wait:
    path, components = way.path, known.components
    needed = {each for element in components.of_path(path) for each in element}
    usual = components.all_up(needed)
    reached = known.reached(path).share
    if known.refresh is not None:
        refreshes = Refreshes(own=known.refresh, helped_per_s=known.helped_per_s(way))
        components = forgetful_on_average(components, path, refreshes)
        through = refreshed_at_least(
            known.reachability.network, path, known.refresh, refreshes.helped_per_s, reached
        )
        usual, reached = usual * through.reached / reached, through.reached
    at_once = usual + (reached - usual) * around.survives
    return approximate_wait(components, path, at_once)


SCHEMES: dict[str, Callable[[Faults, _Way], Stage]] = {
    "none": _none,
    "periodic": _periodic,
    "buffering": _buffering,
    "bypass": _bypass,
    "bypass-buffering": _bypass_buffering,
}
