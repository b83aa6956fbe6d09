"""Loads of queues: when one is overloaded and how that is spoken of, how likely one must wait."""

from __future__ import annotations

# Offered this much or more, a queue grows without end. A broker fed at exactly its own speed by an
# overloaded one is overloaded too, rounding aside.
FULL_LOAD = 1.0 - 1e-9


def overload(name: str, load: float, arrivals_per_s: float, *, what: str = "broker") -> str:
    """Describe the overload of a broker (or ``what`` it is) at ``load`` times its capacity.

    >>> overload("hub", 2.0, 50.0)
    "broker 'hub' is overloaded, at 2 times its capacity: 50 events/s arrive, 25 can leave"
    """
    return (
        f"{what} '{name}' is overloaded, at {load:.3g} times its capacity: "
        f"{arrivals_per_s:.4g} events/s arrive, {arrivals_per_s / load:.4g} can leave"
    )


def waiting_probability(servers: int, offered: float) -> float:
    """Compute the probability that an arrival must wait in M/M/m (Erlang's C).

    The offered load must be below m.

    >>> waiting_probability(1, 0.25), round(waiting_probability(2, 1.0), 12)
    (0.25, 0.333333333333)
    """
    blocked = 1.0  # Erlang's B, by its recursion over the number of servers
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    load = offered / servers
    return blocked / (1.0 - load * (1.0 - blocked))
