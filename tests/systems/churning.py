"""Systems whose subscriptions come and go."""

from __future__ import annotations

from typing import Any

from systems.describing import Case, Document, case, exponential, hyperexponential, line

RUN = {"duration_s": 10_000.0, "warmup_s": 500.0}


def _visiting(stays: Any, away: Any, **more: Any) -> Document:
    return {"wants": {}, "stays": stays, "away": away, **more}


def _delays_only(stays: Any, away: Any) -> Document:
    """No queue: two hops with delays, which subscriptions cross the other way."""
    document = line([{}] * 3, exponential(0.2), 0.5, link={"delay": exponential(0.1)})
    document["subscribers"] = {
        f"s{number}": {"at": f"b{number}", **_visiting(stays, away)} for number in (1, 2)
    }
    return document


def _busy(*, somebody_stays: bool, every: Any = None) -> Document:
    """Two brokers, both .8 busy with what others want, and visitors of the second."""
    document = line([{"service": exponential(1.0)}] * 2, every or exponential(1.25), 6.0)
    visitors = {
        f"visitor {number}": {"at": "b1", **_visiting(exponential(30.0), exponential(60.0))}
        for number in range(4)
    }
    staying = {"stays": {"at": "b1", "wants": {}}} if somebody_stays else {}
    return {
        **document,
        "lifetime": 6.0,
        "subscribers": {**visitors, **staying, "beside": {"at": "b0", "wants": {}}},
    }


def _own_topics(visitors: int) -> Document:
    """A broker .8 busy on average with what its visitors want, each of them another topic."""
    rate = 0.8 / (visitors / 3)  # a third of them is there at a time
    numbers = range(visitors)
    return {
        "lifetime": 6.0,
        "brokers": {"hub": {}, "edge": {"service": exponential(1.0)}},
        "links": [{"between": ["hub", "edge"]}],
        "publishers": {
            f"p{number}": {
                "at": "hub",
                "every": {"rate": rate},
                "content": {"event": {"topic": f"t{number}"}},
            }
            for number in numbers
        },
        "subscribers": {
            f"s{number}": {
                "at": "edge",
                **_visiting(exponential(30.0), exponential(60.0)),
                "wants": {"topic": f"t{number}"},
            }
            for number in numbers
        },
    }


def _failing(recovery: Document, service: Any = None) -> Document:
    """Visitors two hops away, behind a broker that fails."""
    served = {} if service is None else {"service": service}
    broker = {**served, "failure": {"availability": 0.95, "period": 200.0}}
    document = line([served, broker, served], exponential(0.5), 1.0, recovery=recovery)
    document["subscribers"] = {
        "stays": {"at": "b2", "wants": {}, "lifetime": 1.0},
        "visits": {"at": "b2", **_visiting(exponential(20.0), exponential(10.0)), "lifetime": 1.0},
    }
    return document


def _lognormal() -> Document:
    """Three brokers of log-normal services, visitors at both ends."""
    service = {"lognormal": {"mean": 0.05, "scv": 2.0}}
    document = line([{"service": service}] * 3, exponential(0.1), 1.0, link={"delay": 0.01})
    document["subscribers"] = {
        f"s{number}": {
            "at": f"b{number}",
            "lifetime": 0.15 * (number + 1),
            **_visiting(exponential(30.0), exponential(10.0)),
        }
        for number in (0, 2)
    }
    return document


def cases() -> list[Case]:
    """All of them."""
    bursts = _busy(somebody_stays=True, every=hyperexponential(1.6, 6.0))
    systems = {
        "visitors, delays only": _delays_only(exponential(2.0), exponential(1.0)),
        "visitors of constant stays": _delays_only(2.0, exponential(1.0)),
        "visitors of heavy stays": _delays_only({"lognormal": {"mean": 3.0, "scv": 4.0}}, 1.0),
        "visitors of busy brokers": _busy(somebody_stays=True),
        "visitors who make brokers busy": _busy(somebody_stays=False),
        "eight visitors of a busy broker, a topic each": _own_topics(8),
        "twenty visitors of a busy broker, a topic each": _own_topics(20),
        "bursts to visitors": bursts,
        "visitors behind failures, periodic": _failing({"scheme": "periodic"}),
        "visitors behind failures, buffering": _failing({"scheme": "buffering"}, exponential(0.1)),
        "visitors behind failures, no recovery": _failing({"scheme": "none"}),
        "visitors behind failures, forgotten": _failing(
            {"scheme": "periodic", "refresh": 5.0, "timeout": 15.0}
        ),
        "visitors of log-normal brokers": _lognormal(),
    }
    longer = {"duration_s": 40_000.0, "warmup_s": 2_000.0}
    return [
        case(name, "churning", document, **(longer if "bus" in name or "bursts" in name else RUN))
        for name, document in systems.items()
    ]
