"""Somebody who publishes to an MQTT broker while tests listen."""

from __future__ import annotations

import contextlib
import threading
import time

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from tidings.testbed.runs import HOST
from tidings.testbed.servers import ServerPlan, free_ports


@contextlib.contextmanager
def published(port, topics, every_s):
    """Somebody who publishes on these topics in turn until it is over, with one retained before."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect(HOST, port)
    client.loop_start()
    client.publish("old", b"kept", retain=True).wait_for_publish(5.0)
    over = threading.Event()

    def publish():
        number, due_s = 0, time.monotonic()
        while not over.is_set():
            client.publish(topics[number % len(topics)], b"12345678")
            number, due_s = number + 1, due_s + every_s
            time.sleep(max(0.0, due_s - time.monotonic()))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        client.disconnect()
        client.loop_stop()


def server(name, dials=None):
    """The plan of a broker with free ports; ``dials`` are ports of others by arc."""
    client_port, broker_port, monitor_port = free_ports(3)
    return ServerPlan(
        name=name, label=name, client_port=client_port, broker_port=broker_port,
        monitor_port=monitor_port, dials=dials or {}, links=0,
    )  # fmt: skip
