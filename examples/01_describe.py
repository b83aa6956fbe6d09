"""1. Describe a system: read it from a file, look at it, change it, write it."""

from pathlib import Path

import tidings as td
from tidings.planning.changes import changed

system = td.load(Path(__file__).parent / "city.yaml")

print(f"{system.description}: {len(system.brokers)} brokers, {len(system.links)} links")
for publisher in system.publishers:
    print(f"  {publisher.name} publishes {publisher.rate_per_s:g} events/s at {publisher.at}")
for subscriber in system.subscribers:
    print(f"  {subscriber.count} × {subscriber.name} at {subscriber.at}")

# A file with mistakes is refused with all of them at once, each with its line.
try:
    td.loads("{tidings: 1, brokers: {hub: {servce: 1ms}}, publishers: {}, subscribers: {}}")
except td.TidingsError as error:
    print(error)

# Changes are short sentences (docs/reference/changes.md).
td.save(changed(system, ["rate exchange x1.2"]), "busy-city.yaml")
print("written: busy-city.yaml")
