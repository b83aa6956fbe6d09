"""Leads one run on servers that store what they take over: event buffering between brokers.

Between two brokers there is an agent for each direction: a durable consumer hands it what is
wanted behind the link, it gives the link its delay and the next broker its service, stores the
event there and acknowledges it only then. So an event is in the last buffer that took it over
until the next one has it; what a crash or a cut catches under way is sent again after the repair.
"""

from __future__ import annotations

import asyncio

from tidings.model.progress import Progress
from tidings.testbed.breaking import follow_outages
from tidings.testbed.carrying import (
    Carrier,
    FailingPart,
    Receiver,
    Store,
    StoredEvent,
    Works,
    pass_over,
)
from tidings.testbed.clients import Clients, begin, drain, publish_on_schedule
from tidings.testbed.layout import lane_name
from tidings.testbed.relays import Lane
from tidings.testbed.runs import Rejoining, Run
from tidings.testbed.servers import Servers
from tidings.testbed.workload import Publication

_LOCAL = "local"
_AGAIN_S = 0.01
_QUIET = 16  # looks without anything new: longer than a server waits for an acknowledgement


class StoringConductor:
    """Leads one run from the first connection to the last delivery."""

    def __init__(self, run: Run, running: Servers, tell: Progress) -> None:
        self._run, self._names = run, run.subjects
        self._servers, self._tell = running, tell
        self._clients, self._works = Clients(run, running), Works(run)
        self._lanes = {lane.name: lane for relay in run.layout.relays for lane in relay.lanes}
        self._stores: dict[str, Store] = {}
        self._links = {name: FailingPart() for name in run.layout.links}

    async def conduct(self) -> None:
        """Conduct the whole run: set up, publish among outages, drain the last events, clean up."""
        run = self._run
        try:
            await self._set_up()
            self._tell("running")
            begin(run)
            breaking = asyncio.create_task(follow_outages(run, self._change))
            try:
                await publish_on_schedule(run, self._publish, self._clients.check, self._tell)
                self._tell("waiting for repairs and the last events")
                await breaking
            finally:
                breaking.cancel()
            await drain(run, self._clients.check, quiet=_QUIET)
        finally:
            await self._works.end()
            await self._clients.close()

    async def _set_up(self) -> None:
        self._tell("creating streams")
        for plan in self._run.layout.servers.values():
            client = await self._clients.connect(plan.client_port, f"agent of {plan.name}")
            self._stores[plan.name] = Store(client=client, streams=client.jetstream())
            await self._stores[plan.name].open()
        for name, relays in self._run.layout.links.items():
            self._links[name].works.set()
            for lane in (lane for relay in relays for lane in relay.lanes):
                await self._join(lane, self._links[name])
        self._run.subscribed_s = asyncio.get_running_loop().time()
        for index, one in enumerate(self._run.system.subscribers):
            lane, home = self._lanes[lane_name(one.at, one.name)], self._stores[one.at]
            filters = [f"q.*.{subject}" for subject in self._names.of_subscriber[index]]
            if filters:
                receiver = Receiver(self._works, lane, home, index)
                await home.hand_out(f"to_{index}", filters, receiver.take)

    async def _join(self, lane: Lane, link: FailingPart) -> None:
        """Start an agent that carries what is wanted behind a link, but for what came over it."""
        assert lane.broker is not None
        others = {
            each.source
            for each in self._lanes.values()
            if each.broker == lane.source and each.source in self._stores
        }
        sources = [_LOCAL, *sorted(self._token(each) for each in others - {lane.broker})]
        wanted = self._run.layout.journal.wanted.get(lane_name(lane.broker, lane.source), set())
        filters = [f"q.{source}.{subject}" for source in sources for subject in sorted(wanted)]
        if filters:
            here, there = self._stores[lane.source], self._stores[lane.broker]
            carrier = Carrier(self._works, lane, (here, there), link, self._token(lane.source))
            await here.hand_out(f"over_{self._token(lane.broker)}", filters, carrier.take)

    def _token(self, broker: str) -> str:
        """Give what stands for a broker in a subject: its number, as its name may hold anything."""
        return str(self._run.system.broker_index[broker])

    async def _publish(self, each: Publication) -> None:
        """Hand an event in; what its broker, being down, does not store is lost."""
        publisher = self._run.system.publishers[each.publisher]
        lane, home = (
            self._lanes[lane_name(publisher.name, publisher.at)],
            self._stores[publisher.at],
        )
        if home.works.is_set() and not lane.is_lost():
            born_s = self._run.start_s + each.at_s
            event = StoredEvent(
                name=each.event,
                subject=self._names.of_content[each.content.text],
                content=each.content.text.encode(),
                expires_s=born_s + (float("inf") if each.lifetime_s is None else each.lifetime_s),
            )
            self._works.start(pass_over(self._works, lane, (home,), event, _LOCAL, born_s))

    async def _change(self, component: str, is_up: bool) -> None:
        """Break or mend a part."""
        if component in self._links:
            link = self._links[component]
            link.works.set() if is_up else link.fail()
        elif is_up:
            await asyncio.to_thread(self._servers.start, component)
            self._works.start(self._rejoin(component))
        else:
            self._stores[component].fail()
            await asyncio.to_thread(self._servers.kill, component)
            self._run.layout.stations[component].free_s = 0.0  # its queue is gone, not its stream

    async def _rejoin(self, broker: str) -> None:
        """Wait until a server that was restarted answers, and write down how long that took."""
        store, loop = self._stores[broker], asyncio.get_running_loop()
        began_s, failures = loop.time(), store.failures
        while not await store.answers():
            await asyncio.sleep(_AGAIN_S)
        if store.failures == failures:
            store.works.set()
            took_s = loop.time() - began_s
            self._run.rejoined.append(Rejoining(component=broker, took_s=took_s))
