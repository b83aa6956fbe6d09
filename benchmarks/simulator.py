"""The simulator against SimPy and Ciw: the same network, in the same run, by CPU time.

Fifteen brokers in a binary tree, a publisher and two subscribers at each leaf, contents of eight
kinds of which each subscriber wants one: exponential intervals and services, busiest broker at
about 0.6. The SimPy model is the fastest plain one we could write: a process for each publisher
and broker, a store as queue, forwarding looked up in a table made beforehand. Ciw knows no copies,
so its nodes are given a release that makes them; the records it keeps of every visit are left out,
which only helps it.

    python benchmarks/simulator.py [--seconds 10] [--rounds 5] [--write]
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import ciw
import numpy as np
import simpy
from recording import add_write_option, record
from turns import Run, add_options, compare

from tidings.model.reading import loads
from tidings.model.routes import Routes, route
from tidings.model.system import System
from tidings.simulation.network import compile_system
from tidings.simulation.world import Window, make_world, run_world

LEAVES = range(8, 16)
SERVICE_S = 0.00341
ROOT_LOAD = 0.8  # if every event passed the root; about two thirds do


def binary_tree() -> System:
    lines = ["tidings: 1", "lifetime: 60ms", "brokers:"]
    lines += [f"  b{i}: {{service: {{exponential: {SERVICE_S}}}}}" for i in range(1, 16)]
    lines += ["links:"] + [f"  - {{between: [b{i // 2}, b{i}]}}" for i in range(2, 16)]
    lines.append("publishers:")
    for i in LEAVES:
        every = len(LEAVES) * SERVICE_S / ROOT_LOAD
        lines += [f"  p{i}:", f"    at: b{i}", f"    every: {{exponential: {every}}}"]
        lines += ["    content:"] + [
            f"      - {{p: 0.125, event: {{kind: {k}}}}}" for k in range(8)
        ]
    lines.append("subscribers:")
    for i in LEAVES:
        lines.append(f"  s{i}: {{at: b{i}, wants: {{kind: {i - 8}}}}}")
        lines.append(f"  t{i}: {{at: b{i}, wants: {{kind: {(i - 7) % 8}}}}}")
    return loads("\n".join(lines))


def with_tidings(system: System, seconds: float, seed: int) -> Run:
    compiled = compile_system(system)
    short = Window(warmup_s=0.0, end_s=0.01)
    run_world(make_world(compiled, short, seed, 0), compiled, short)  # compiles, or loads
    window = Window(warmup_s=0.0, end_s=seconds)
    world = make_world(compiled, window, seed, 0)
    begun = time.process_time()
    run_world(world, compiled, window)
    cpu_s = time.process_time() - begun
    cells = world.tables["cells"]
    return Run(
        visits=int(world.tables["stations"].arrivals.sum()),
        cpu_s=cpu_s,
        delay_s=float(cells.delay_sum.sum() / cells.delivered.sum()),
        deliveries=int(cells.delivered.sum()),
    )


def forwarding(routes: Routes, brokers: int) -> tuple[list[list[bool]], list[list[list[Any]]]]:
    """By broker and class: whether anybody there wants it, and the arcs it leaves by."""
    wanted = np.zeros((brokers, routes.class_count), dtype=bool)
    for index, home in enumerate(routes.home_of_subscriber):
        wanted[home] |= routes.wanted_by(index)
    onwards = [
        [
            [(arc, routes.arcs[arc].target) for arc in out if routes.interest[arc, each] > 0]
            for each in range(routes.class_count)
        ]
        for out in routes.trees[0].outgoing
    ]
    return wanted.tolist(), onwards


def with_simpy(system: System, seconds: float, seed: int) -> Run:
    routes, brokers = route(system), len(system.brokers)
    local, onwards = forwarding(routes, brokers)
    rng = random.Random(seed)
    draw, choose = rng.expovariate, rng.random
    env = simpy.Environment()
    stores = [simpy.Store(env) for _ in range(brokers)]
    visits, deliveries, delays = 0, 0, 0.0

    def broker(index: int, rate: float) -> Any:
        nonlocal visits, deliveries, delays
        store, mine, ways = stores[index], local[index], onwards[index]
        while True:
            kind, born, back = yield store.get()
            yield env.timeout(draw(rate))
            visits += 1
            if mine[kind]:
                deliveries += 1
                delays += env.now - born
            for arc, target in ways[kind]:
                if arc != back:
                    stores[target].put((kind, born, arc ^ 1))

    def publisher(home: int, rate: float, kinds: list[int]) -> Any:
        store, count = stores[home], len(kinds)
        while True:
            yield env.timeout(draw(rate))
            store.put((kinds[int(choose() * count)], env.now, -1))

    for index in range(brokers):
        env.process(broker(index, 1.0 / SERVICE_S))
    for index, each in enumerate(system.publishers):
        kinds = [row.content_class for row in routes.rows if row.publisher == index]
        env.process(publisher(int(routes.home_of_publisher[index]), each.rate_per_s, kinds))
    begun = time.process_time()
    env.run(until=seconds)
    cpu_s = time.process_time() - begun
    return Run(visits=visits, cpu_s=cpu_s, delay_s=delays / deliveries, deliveries=deliveries)


def with_ciw(system: System, seconds: float, seed: int) -> Run:
    routes, brokers = route(system), len(system.brokers)
    local, onwards = forwarding(routes, brokers)
    kinds: list[list[int]] = [[] for _ in range(brokers)]
    arrivals: list[Any] = [None] * brokers
    for index, each in enumerate(system.publishers):
        home = int(routes.home_of_publisher[index])
        kinds[home] = [row.content_class for row in routes.rows if row.publisher == index]
        arrivals[home] = ciw.dists.Exponential(each.rate_per_s)
    visits, deliveries, delays = 0, 0, 0.0

    class Copy(ciw.Individual):
        kind, born, back = -1, 0.0, -1

    class Broker(ciw.Node):
        def release(self, individual: Any, next_node: Any, reroute: bool = False) -> None:
            nonlocal visits, deliveries, delays
            here, nodes = self.id_number - 1, self.simulation.nodes
            if individual.kind < 0:  # straight from its publisher
                individual.born = individual.arrival_date
                individual.kind = random.choice(kinds[here])
            kind, born, back = individual.kind, individual.born, individual.back
            visits += 1
            if local[here][kind]:
                deliveries += 1
                delays += self.now - born
            super().release(individual, next_node)  # the copy itself leaves the network
            for arc, target in onwards[here][kind]:
                if arc != back:
                    copy = Copy(0, individual.customer_class)
                    copy.kind, copy.born, copy.back = kind, born, arc ^ 1
                    nodes[target + 1].accept(copy)

        def write_individual_record(self, individual: Any) -> None:
            """Keep nothing."""

    class Exit(ciw.ExitNode):
        def accept(self, next_individual: Any, completed: bool = True) -> None:
            """Keep nothing."""

    network = ciw.create_network(
        arrival_distributions=arrivals,
        service_distributions=[ciw.dists.Exponential(1.0 / SERVICE_S)] * brokers,
        number_of_servers=[1] * brokers,
        routing=ciw.routing.NetworkRouting(routers=[ciw.routing.Leave()] * brokers),
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(
        network, node_class=Broker, exit_node_class=Exit, individual_class=Copy
    )
    begun = time.process_time()
    simulation.simulate_until_max_time(seconds)
    cpu_s = time.process_time() - begun
    return Run(visits=visits, cpu_s=cpu_s, delay_s=delays / deliveries, deliveries=deliveries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    add_write_option(parser, "simulator")
    args = parser.parse_args()
    system = binary_tree()
    engines = {
        "Tidings": lambda seconds, seed: with_tidings(system, 1600.0 * seconds, seed),
        "SimPy": lambda seconds, seed: with_simpy(system, 32.0 * seconds, seed),
        "Ciw": lambda seconds, seed: with_ciw(system, 4.0 * seconds, seed),
    }
    found = compare(engines, args)
    if args.write:
        record("simulator", found)


if __name__ == "__main__":
    main()
