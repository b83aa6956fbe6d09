"""How an overloaded broker is spoken of, the same wherever it is found."""

from __future__ import annotations

# Offered this much or more, a queue grows without end. A broker fed at exactly its own speed by an
# overloaded one is overloaded too, rounding aside.
FULL_LOAD = 1.0 - 1e-9


def overload(broker: str, load: float, arrivals_per_s: float) -> str:
    """What is wrong with a broker that is offered ``load`` times the work it can do.

    >>> overload("hub", 2.0, 50.0)
    "broker 'hub' is offered 2 times the work it can do (ρ = 2): 50 events/s arrive, 25 can leave"
    """
    return (
        f"broker '{broker}' is offered {load:.3g} times the work it can do (ρ = {load:.3g}): "
        f"{arrivals_per_s:.4g} events/s arrive, {arrivals_per_s / load:.4g} can leave"
    )
