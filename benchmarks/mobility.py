"""Peers that come and go: the simulator against SimPy and Ciw, the same network, by CPU time.

Four publishers and four subscribers that come and go (ON and OFF 1 s and 1.5 s on average, as in
the mobile paper's degraded network) at the ends of a line of three brokers; every event is for one
subscriber, which takes it in at a queue of its own: six queues an event, all times exponential.

The SimPy model is the leanest we could write: one process a queue, and a queue that comes and goes
reckons beforehand when its absences let it finish, so that a job costs one timeout and no
interrupt. Ciw is given the times ON and OFF as a schedule with pre-emption, drawn beforehand.

    python benchmarks/mobility.py [--seconds 10] [--rounds 5] [--write]
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import ciw
import simpy
from recording import add_write_option, record
from turns import Run, add_options, compare

from tidings.model.reading import loads
from tidings.model.system import System
from tidings.simulation.network import compile_system
from tidings.simulation.world import Window, make_world, run_world

PAIRS, BROKERS = 4, 3
RATE_PER_S, SERVICE_S, BROKER_S = 2.0, 0.0625, 0.03125
PUBLISHER_S, SUBSCRIBER_S = 1.0, 1.5  # both times ON and times OFF, on average


def line_of_brokers() -> System:
    def coming_and_going(mean_s: float) -> str:
        times = f"on: {{exponential: {mean_s}}}, off: {{exponential: {mean_s}}}"
        return f"connectivity: {{{times}, service: {{exponential: {SERVICE_S}}}}}"

    lines = ["tidings: 1", "lifetime: 5s", "brokers:"]
    lines += [f"  b{i}: {{service: {{exponential: {BROKER_S}}}}}" for i in range(BROKERS)]
    lines += ["links:"] + [f"  - {{between: [b{i}, b{i + 1}]}}" for i in range(BROKERS - 1)]
    lines.append("publishers:")
    for i in range(PAIRS):
        every = f"at: b0, every: {{rate: {RATE_PER_S}/s}}, content: {{event: {{k: {i}}}}}"
        lines.append(f"  p{i}: {{{every}, {coming_and_going(PUBLISHER_S)}}}")
    lines.append("subscribers:")
    for i in range(PAIRS):
        own = f"at: b{BROKERS - 1}, wants: {{k: {i}}}, processing: {{exponential: {SERVICE_S}}}"
        lines.append(f"  s{i}: {{{own}, {coming_and_going(SUBSCRIBER_S)}}}")
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
    receipts = world.tables["receipts"]
    return Run(
        visits=int(world.tables["stations"].arrivals.sum()),
        cpu_s=cpu_s,
        delay_s=float(receipts.delay_sum.sum() / receipts.delivered.sum()),
        deliveries=int(receipts.delivered.sum()),
    )


def resumed(
    draw: Any, away_s: float, at: float, work: float, ends: float
) -> tuple[float, float, float]:
    """When the last part of some work begins, how much it is, when the time ON it is in ends."""
    while True:
        while ends <= at:  # times that have passed, while nothing was there or in between
            back = ends + draw(1.0 / away_s)
            ends = back + draw(1.0 / away_s)
            at = max(at, back)
        if at + work <= ends:
            return at, work, ends
        work -= ends - at
        at = ends


def with_simpy(seconds: float, seed: int) -> Run:
    draw = random.Random(seed).expovariate
    env = simpy.Environment()
    jobs, deliveries, delays = 0, 0, 0.0

    def queue(store: Any, rate: float, away_s: float, onwards: Any) -> Any:
        """A queue, plain or (with ``away_s``) ON and OFF by turns for such times."""
        nonlocal jobs
        ends = draw(1.0 / away_s) if away_s else 0.0  # of the time ON that lasts now
        while True:
            event = yield store.get()
            work, at = draw(rate), env.now
            if away_s:
                at, work, ends = resumed(draw, away_s, at, work, ends)
            yield env.timeout(at + work - env.now)
            jobs += 1
            onwards(event)

    def received(event: Any) -> None:
        nonlocal deliveries, delays
        deliveries += 1
        delays += env.now - event[1]

    own = [simpy.Store(env) for _ in range(PAIRS)]
    waiting = [simpy.Store(env) for _ in range(PAIRS)]
    brokers = [simpy.Store(env) for _ in range(BROKERS)]
    published = [simpy.Store(env) for _ in range(PAIRS)]

    def hand_out(event: Any) -> None:
        waiting[event[0]].put(event)

    def publisher(index: int) -> Any:
        while True:
            yield env.timeout(draw(RATE_PER_S))
            published[index].put((index, env.now))

    for index in range(PAIRS):
        env.process(queue(published[index], 1.0 / SERVICE_S, PUBLISHER_S, brokers[0].put))
        env.process(queue(waiting[index], 1.0 / SERVICE_S, SUBSCRIBER_S, own[index].put))
        env.process(queue(own[index], 1.0 / SERVICE_S, 0.0, received))
        env.process(publisher(index))
    for index, store in enumerate(brokers):
        following = brokers[index + 1].put if index + 1 < BROKERS else hand_out
        env.process(queue(store, 1.0 / BROKER_S, 0.0, following))
    begun = time.process_time()
    env.run(until=seconds)
    cpu_s = time.process_time() - begun
    return Run(visits=jobs, cpu_s=cpu_s, delay_s=delays / deliveries, deliveries=deliveries)


def with_ciw(seconds: float, seed: int) -> Run:
    rng = random.Random(seed)
    jobs, deliveries, delays = 0, 0, 0.0

    def schedule(mean_s: float) -> Any:
        """Times ON and OFF by turns until after the end, with the work resumed after an absence."""
        ends, at = [], 0.0
        while at < seconds or len(ends) % 2:
            at += rng.expovariate(1.0 / mean_s)
            ends.append(at)
        servers = [1, 0] * (len(ends) // 2)
        return ciw.Schedule(numbers_of_servers=servers, shift_end_dates=ends, preemption="resume")

    class Counting(ciw.Node):
        def write_individual_record(self, individual: Any) -> None:
            nonlocal jobs, deliveries, delays
            jobs += 1
            if self.id_number >= first_own:
                deliveries += 1
                delays += self.now - individual.born

        def write_interruption_record(self, individual: Any, destination: Any = None) -> None:
            """Keep nothing."""

    class Exit(ciw.ExitNode):
        def accept(self, next_individual: Any, completed: bool = True) -> None:
            """Keep nothing."""

    class Event(ciw.Individual):
        born = 0.0

    # Nodes: publishers, brokers, where events wait for subscribers, subscribers' own queues.
    first_broker, first_waiting = PAIRS + 1, PAIRS + BROKERS + 1
    first_own = first_waiting + PAIRS

    def way(individual: Any, simulation: Any) -> list[int]:
        individual.born = simulation.current_time
        at = individual.starting_node - 1
        brokers = list(range(first_broker, first_broker + BROKERS))
        return [*brokers, first_waiting + at, first_own + at]

    nodes = PAIRS + BROKERS + 2 * PAIRS
    service = ciw.dists.Exponential(1.0 / SERVICE_S)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(RATE_PER_S)] * PAIRS
        + [None] * (nodes - PAIRS),
        service_distributions=[service] * PAIRS
        + [ciw.dists.Exponential(1.0 / BROKER_S)] * BROKERS
        + [service] * (2 * PAIRS),
        number_of_servers=[schedule(PUBLISHER_S) for _ in range(PAIRS)]
        + [1] * BROKERS
        + [schedule(SUBSCRIBER_S) for _ in range(PAIRS)]
        + [1] * PAIRS,
        routing=ciw.routing.ProcessBased(way),
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(
        network, node_class=Counting, exit_node_class=Exit, individual_class=Event
    )
    begun = time.process_time()
    simulation.simulate_until_max_time(seconds)
    cpu_s = time.process_time() - begun
    return Run(visits=jobs, cpu_s=cpu_s, delay_s=delays / deliveries, deliveries=deliveries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    add_write_option(parser, "mobility")
    args = parser.parse_args()
    system = line_of_brokers()
    engines = {
        "Tidings": lambda seconds, seed: with_tidings(system, 100_000.0 * seconds, seed),
        "SimPy": lambda seconds, seed: with_simpy(1_500.0 * seconds, seed),
        "Ciw": lambda seconds, seed: with_ciw(300.0 * seconds, seed),
    }
    found = compare(engines, args)
    if args.write:
        record("mobility", found)


if __name__ == "__main__":
    main()
