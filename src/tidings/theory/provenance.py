"""How an answer of theory came about, and what its reader must know."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from tidings.model.reading import fingerprint
from tidings.model.remarks import Remark, of_system
from tidings.model.system import System
from tidings.theory.network.network import Network


def provenance(system: System, network: Network, parameters: int) -> dict[str, Any]:
    """Describe how an answer came about, as plain data; error bars come from some parameters."""
    story: dict[str, Any] = {
        "version": metadata.version("tidings"),
        "engine": "theory",
        "system": fingerprint(system),
        "warnings": [],
    }
    if parameters:
        story["error_bars"] = {
            "parameters": parameters,
            "method": "to first order, parameters taken as independent",
        }
    if network.routes.sampled:
        sampling = network.routes.sampling
        story["contents_drawn"] = {
            "publishers": len(network.routes.sampled),
            "events": sampling.draws,
            "seed": sampling.seed,
        }
    return story


def remarks(system: System, network: Network) -> tuple[Remark, ...]:
    """List what the reader of an answer must know."""
    brokers = [broker.name for broker in system.brokers]
    said = [
        Remark(
            kind="overload",
            what="a broker is overloaded: its queue grows without limit, and events that wait "
            "there never arrive",
            where=(name,),
            size=float(load),
            unit="times its capacity",
            do="add servers, make it faster, or send it fewer events",
        )
        for name, load, over in zip(
            brokers, network.rates.loads, network.rates.overloaded, strict=True
        )
        if over
    ]
    if not network.rates.settled:
        said.append(
            Remark(
                kind="overload",
                what="overloaded brokers send to each other in a loop, so the rates downstream of "
                "them are not reliable",
                where=(),
                do="remove the overload first",
            )
        )
    return (*said, *of_system(system))
