"""How an overloaded broker or peer is spoken of, the same wherever it is found."""

from __future__ import annotations

# Offered this much or more, a queue grows without end. A broker fed at exactly its own speed by an
# overloaded one is overloaded too, rounding aside.
FULL_LOAD = 1.0 - 1e-9


def overload(name: str, load: float, arrivals_per_s: float, *, what: str = "broker") -> str:
    """What is wrong with a broker (or ``what`` it is) offered ``load`` times what it can do.

    >>> overload("hub", 2.0, 50.0)
    "broker 'hub' is offered 2 times the work it can do (ρ = 2): 50 events/s arrive, 25 can leave"
    """
    return (
        f"{what} '{name}' is offered {load:.3g} times the work it can do (ρ = {load:.3g}): "
        f"{arrivals_per_s:.4g} events/s arrive, {arrivals_per_s / load:.4g} can leave"
    )
