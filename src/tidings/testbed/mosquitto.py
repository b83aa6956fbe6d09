"""Mosquitto as the servers of a testbed, joined into a tree by bridges.

A bridge passes on the topics that its configuration names: those that somebody behind it wants. So
what goes where is known beforehand, and no subscription may come and go. A topic begins with the
broker it was published at; else what came over one link of two bridges would go back over it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from tidings.errors import EngineError
from tidings.testbed.frames import NewFrames
from tidings.testbed.mqtt_frames import MqttFrames
from tidings.testbed.runs import HOST
from tidings.testbed.servers import ServerKind, ServerPlan

_SERVER = "mosquitto"
_NOTHING = "nothing"  # a bridge wants a topic
_SYSTEM = "/usr/sbin"  # where Debian puts it, which is on no user's path

_CONFIGURATION = """\
listener {client_port} {host}
listener {broker_port} {host}
allow_anonymous true
log_dest stderr
log_type error
log_type warning
log_type notice
log_type information
set_tcp_nodelay true
max_inflight_messages 60000
max_queued_messages 0
{storing}
{bridges}
"""
_STORING = """\
persistence true
persistence_location {folder}/
autosave_interval 1
autosave_on_changes true
"""
_BRIDGE = """\
connection {name}
address {host}:{port}
bridge_protocol_version mqttv50
remote_clientid {name}
local_clientid local-{name}
cleansession {forgets}
local_cleansession {forgets}
notifications false
bridge_attempt_unsubscribe false
restart_timeout 1 1
{topics}
"""


class Mosquitto(ServerKind):
    """``mosquitto``, joined by bridges of MQTT 5; ``topics`` are by the arc that they go over.

    With quality of service 1 a bridge keeps what it sends until the next broker has it. That is so
    on the sending side alone (a session that a bridge opens at the other end is forgotten when the
    connection ends), so at both ends of a link a broker dials the other, each for what it sends.
    """

    ready = "running"
    both_dial = True
    tells = False
    frames: NewFrames = MqttFrames

    def __init__(self, topics: Mapping[int, Collection[str]], qos: int) -> None:
        self._topics, self.qos = topics, qos
        self.repeats = qos > 0

    def configuration(self, plan: ServerPlan, folder: Path) -> str:
        """Give the text of a configuration file; what the server stores is under the folder."""
        kept = folder / plan.label
        if self.qos:
            kept.mkdir(exist_ok=True)
        bridges = (self._bridge(plan.label, arc, port) for arc, port in plan.dials.items())
        return _CONFIGURATION.format(
            host=HOST,
            client_port=plan.client_port,
            broker_port=plan.broker_port,
            storing=_STORING.format(folder=kept) if self.qos else "",
            bridges="".join(bridges),
        )

    def _bridge(self, label: str, arc: int, port: int) -> str:
        topics = sorted(self._topics.get(arc, ())) or [_NOTHING]
        return _BRIDGE.format(
            name=f"{label}-{arc}",
            host=HOST,
            port=port,
            forgets="false" if self.qos else "true",
            topics="\n".join(f"topic {each} out {self.qos}" for each in topics),
        )

    def command(self, configuration: Path) -> list[str]:
        """Give the command that starts it; raises :class:`EngineError` where there is none."""
        path = shutil.which(_SERVER) or shutil.which(_SERVER, path=_SYSTEM)
        if path is None:
            raise EngineError(
                f"there is no {_SERVER} on the PATH or in {_SYSTEM}; install it, on Debian by: "
                "apt install mosquitto"
            )
        return [path, "-c", str(configuration)]
