"""The simulator of queueing Petri nets against SimPy and Ciw: one net, in one run, by CPU time.

The fifteen brokers of the performance-methodology paper (scenario 1, with the stage of delivery): a
colour for each publisher, exponential everything, forwarding to every next broker by a coin of its
own. The SimPy model is the leanest we could write: a process for each publisher and broker, a store
as queue, forwarding from a table made beforehand. Ciw knows no copies, so its nodes are given a
release that makes them; the records it keeps of every visit are left out, which only helps it.
Then how long it takes until every residence time of the net is known to 1 %.

    python benchmarks/petri_nets.py [--seconds 5] [--write]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ciw
import simpy
from recording import add_write_option, record

from tidings.model.workload import Workload
from tidings.petri.compiling import compile_net
from tidings.petri.generating import generate_net
from tidings.petri.simulating import simulate_net
from tidings.petri.world import NetWindow, make_world, run_world

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a clone has studies, a wheel none

from studies.performance_methodology.case_study import (
    SCENARIOS,
    SERVICE_S,
    case_workload,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one engine did."""

    visits: int
    cpu_s: float
    latency_s: float  # of all that is delivered

    @property
    def visits_per_cpu_s(self) -> float:
        """How fast it was."""
        return self.visits / self.cpu_s


def with_tidings(load: Workload, seconds: float, seed: int, *, curves: bool) -> Run:
    compiled = compile_net(generate_net(load))
    short = NetWindow(end_s=0.01, curves=curves)
    run_world(make_world(compiled, short, seed, 0), compiled, short)  # compiles, or loads
    window = NetWindow(end_s=seconds, curves=curves)
    world = make_world(compiled, window, seed, 0)
    begun = time.process_time()
    run_world(world, compiled, window)
    cpu_s = time.process_time() - begun
    cells = world.tables["cells"]
    last = [at for at, (place, _) in enumerate(compiled.cells.all) if place == "delivery"]
    latency_s = float(cells.age[last].sum() / cells.departures[last].sum())
    return Run(visits=int(cells.departures.sum()), cpu_s=cpu_s, latency_s=latency_s)


def forwarding(load: Workload) -> list[list[list[tuple[int, float]]]]:
    """By flow and node: where events go on to, and with which probability."""
    found: list[list[list[tuple[int, float]]]] = []
    for flow in load.flows:
        onwards: list[list[tuple[int, float]]] = [[] for _ in load.nodes]
        for connection, share in flow.forwarding:
            ends = load.connections[connection]
            onwards[ends.source].append((ends.target, share))
        found.append(onwards)
    return found


def with_simpy(load: Workload, seconds: float, seed: int) -> Run:
    onwards, last = forwarding(load), len(load.nodes) - 1
    rng = random.Random(seed)
    draw, toss = rng.expovariate, rng.random
    env = simpy.Environment()
    stores = [simpy.Store(env) for _ in load.nodes]
    visits, delivered, latencies = 0, 0, 0.0

    def broker(index: int) -> Any:
        nonlocal visits, delivered, latencies
        store, rate = stores[index], 1.0 / SERVICE_S
        while True:
            flow, born = yield store.get()
            yield env.timeout(draw(rate))
            visits += 1
            if index == last:
                delivered += 1
                latencies += env.now - born
            for target, share in onwards[flow][index]:
                if share == 1.0 or toss() < share:
                    stores[target].put((flow, born))

    def publisher(flow: int) -> Any:
        source = load.sources[load.flows[flow].source]
        store, rate = stores[source.home], 1.0 / source.every.mean_s
        while True:
            yield env.timeout(draw(rate))
            store.put((flow, env.now))

    for index in range(len(load.nodes)):
        env.process(broker(index))
    for flow in range(len(load.flows)):
        env.process(publisher(flow))
    begun = time.process_time()
    env.run(until=seconds)
    cpu_s = time.process_time() - begun
    return Run(visits=visits, cpu_s=cpu_s, latency_s=latencies / delivered)


def with_ciw(load: Workload, seconds: float, seed: int) -> Run:
    onwards, last = forwarding(load), len(load.nodes) - 1
    arrivals: list[Any] = [None] * len(load.nodes)
    flow_at = {}
    for index, flow in enumerate(load.flows):
        source = load.sources[flow.source]
        arrivals[source.home] = ciw.dists.Exponential(1.0 / source.every.mean_s)
        flow_at[source.home] = index
    visits, delivered, latencies = 0, 0, 0.0

    class Copy(ciw.Individual):
        flow, born = -1, 0.0

    class Broker(ciw.Node):
        def release(self, individual: Any, next_node: Any, reroute: bool = False) -> None:
            nonlocal visits, delivered, latencies
            here, nodes = self.id_number - 1, self.simulation.nodes
            if individual.flow < 0:  # straight from its publisher
                individual.born = individual.arrival_date
                individual.flow = flow_at[here]
            flow, born = individual.flow, individual.born
            visits += 1
            if here == last:
                delivered += 1
                latencies += self.now - born
            super().release(individual, next_node)  # the copy itself leaves the network
            for target, share in onwards[flow][here]:
                if share == 1.0 or random.random() < share:
                    copy = Copy(0, individual.customer_class)
                    copy.flow, copy.born = flow, born
                    nodes[target + 1].accept(copy)

        def write_individual_record(self, individual: Any) -> None:
            """Keep nothing."""

    class Exit(ciw.ExitNode):
        def accept(self, next_individual: Any, completed: bool = True) -> None:
            """Keep nothing."""

    count = len(load.nodes)
    network = ciw.create_network(
        arrival_distributions=arrivals,
        service_distributions=[ciw.dists.Exponential(1.0 / SERVICE_S)] * count,
        number_of_servers=[1] * count,
        routing=ciw.routing.NetworkRouting(routers=[ciw.routing.Leave()] * count),
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(
        network, node_class=Broker, exit_node_class=Exit, individual_class=Copy
    )
    begun = time.process_time()
    simulation.simulate_until_max_time(seconds)
    cpu_s = time.process_time() - begun
    return Run(visits=visits, cpu_s=cpu_s, latency_s=latencies / delivered)


def to_one_percent(load: Workload, seed: int) -> dict[str, float]:
    """What it takes until every mean residence time is known to 1 % (95 %)."""
    net = generate_net(load)
    begun = time.process_time()
    found = simulate_net(net, seed=seed, precision=0.01, quantiles=False)
    return {
        "cpu_s": round(time.process_time() - begun, 2),
        "firings": found.provenance["firings"],
        "replications": found.provenance["replications"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds for SimPy, about")
    parser.add_argument("--seed", type=int, default=1)
    add_write_option(parser, "petri_nets")
    args = parser.parse_args()
    load = case_workload(SCENARIOS[0])
    length_s = 60.0 * args.seconds
    runs = {
        "Tidings": with_tidings(load, 30.0 * length_s, args.seed, curves=True),
        "Tidings, no quantiles": with_tidings(load, 30.0 * length_s, args.seed, curves=False),
        "SimPy": with_simpy(load, length_s, args.seed),
        "Ciw": with_ciw(load, 0.2 * length_s, args.seed),
    }
    speed = {name: found.visits_per_cpu_s for name, found in runs.items()}
    for name, found in runs.items():
        print(
            f"{name:22} {found.visits:>12,} visits  {found.cpu_s:7.2f} CPU s  "
            f"{speed[name]:>12,.0f} visits per CPU s  mean latency {1e3 * found.latency_s:.3f} ms"
        )
    ratios = {name: speed["Tidings"] / speed[name] for name in ("SimPy", "Ciw")}
    print(", ".join(f"{ratio:.0f} times {name}" for name, ratio in ratios.items()))
    precise = to_one_percent(load, args.seed)
    print(f"to 1 %: {precise}")
    if args.write:
        document = {
            "versions": {"SimPy": simpy.__version__, "Ciw": ciw.__version__},
            "visits_per_cpu_s": {name: round(each) for name, each in speed.items()},
            "times_as_fast_as": {name: round(each, 1) for name, each in ratios.items()},
            "mean_latency_s": {name: found.latency_s for name, found in runs.items()},
            "visits": {name: found.visits for name, found in runs.items()},
            "to_one_percent": precise,
        }
        record("petri_nets", document)


if __name__ == "__main__":
    main()
