"""Mobile peers together with everything else: predicted against simulated, or refused and why.

    python benchmarks/mobile_combinations.py

A publisher that comes and goes, one that does not, two brokers; subscribers that come and go at
either of them. One thing at a time is added. Shares on time and delivered of the subscriber ``s``,
which comes and goes, predicted and simulated with its standard error.
"""

from __future__ import annotations

from tidings.errors import TidingsError
from tidings.model.reading import loads
from tidings.model.system import System
from tidings.simulation.run import simulate
from tidings.theory.predicting import predict

BASE = """
tidings: 1
lifetime: 8s
HEAD
brokers:
  hub: {service: {exponential: 20ms}FAILURE}
  east: {service: {exponential: 20ms}}
links: [{between: [hub, east], delay: {exponential: 50ms}LINK}]
publishers:
  p: {at: hub, EVERY, content: CONTENT, connectivity: {ON_OFF_P}}
  other: {at: hub, every: {exponential: 500ms}, content: {event: {topic: b, k: 1}}}
subscribers:
  s: {at: east, wants: WANTS, connectivity: {ON_OFF_S}MORE}
"""
PLAIN = {
    "HEAD": "",
    "FAILURE": "",
    "LINK": "",
    "EVERY": "every: {exponential: 1s}",
    "CONTENT": "{event: {topic: a, k: 1}}",
    "WANTS": "{topic: a}",
    "ON_OFF_P": "on: {exponential: 6s}, off: {exponential: 3s}, service: {exponential: 100ms}",
    "ON_OFF_S": "on: {exponential: 6s}, off: {exponential: 3s}, service: {exponential: 100ms}",
    "MORE": "",
}
CRASHES = {"FAILURE": ", failure: {mtbf: 300s, mttr: 10s}"}
COMBINATIONS = {
    "nothing else": {},
    "a lossy link": {"LINK": ", reliability: 0.9"},
    "a lossy link of its own": {"MORE": ", link: {reliability: 0.9, delay: 50ms}"},
    "losses in a row": {"LINK": ", reliability: 0.9, loss_burst: 5"},
    "crashes, periodic refresh": {**CRASHES, "HEAD": "recovery: {scheme: periodic}"},
    "crashes, buffering": {**CRASHES, "HEAD": "recovery: {scheme: buffering}"},
    "crashes, bypass": {**CRASHES, "HEAD": "recovery: {scheme: bypass}"},
    "a filter on half the events": {
        "CONTENT": "[{p: 0.5, event: {topic: a, k: 1}}, {p: 0.5, event: {topic: a, k: 2}}]",
        "WANTS": "{topic: a, k: 1}",
    },
    "both publishers' events": {"WANTS": "[{topic: a}, {topic: b}]"},
    "random lifetimes": {"HEAD": "", "LIFE": "{exponential: 8s}"},
    "a lifetime of its own": {"MORE": ", lifetime: 4s"},
    "expired: in queue": {"HEAD": "expired: in queue"},
    "expired: at hop": {"HEAD": "expired: at hop"},
    "a queue of its own": {"MORE": ", processing: {exponential: 200ms}"},
    "a bounded buffer": {"ON_OFF_S": PLAIN["ON_OFF_S"] + ", buffer: 3"},
    "periodic events": {"EVERY": "every: 1s"},
    "bursty events": {
        "EVERY": "every: {hyperexponential: [{p: 0.7, mean: 100ms}, {p: 0.3, mean: 3s}]}"
    },
    "constant OFF": {"ON_OFF_S": PLAIN["ON_OFF_S"].replace("off: {exponential: 3s}", "off: 3s")},
    "gamma ON": {
        "ON_OFF_S": PLAIN["ON_OFF_S"].replace(
            "on: {exponential: 6s}", "on: {gamma: {mean: 6s, shape: 3}}"
        )
    },
    "rates by time of day": {"EVERY": "rates: {slot: 10min, per_s: [1, 2]}"},
    "churn": {"MORE": ", stays: {exponential: 300s}, away: {exponential: 100s}"},
}


def combined(changes: dict[str, str]) -> System:
    """The base system with some of its parts changed."""
    text = BASE.replace("lifetime: 8s", f"lifetime: {changes.get('LIFE', '8s')}")
    for word, plain in PLAIN.items():
        text = text.replace(word, changes.get(word, plain))
    return loads(text)


def main() -> None:
    print("| with | predicted: on time, delivered | simulated | difference |\n|---|---|---|---|")
    for name, changes in COMBINATIONS.items():
        try:
            system = combined(changes)
            found = predict(system, delays=False).subscribers.iloc[0]
        except TidingsError as refusal:
            head, *places = str(refusal).splitlines()
            print(f"| {name} | refused: {(places or [head])[0].strip()} | | |", flush=True)
            continue
        seen = simulate(system, seed=5, replications=20, duration_s=8_000.0, warmup_s=300.0)
        row = seen.subscribers.iloc[0]
        off = found["on_time"] - row["on_time"]
        cells = (
            f"{found['on_time']:.3f}, {found['delivered']:.3f}",
            f"{row['on_time']:.3f} ± {row['on_time_se']:.3f}, {row['delivered']:.3f}",
            f"{off:+.3f}",
        )
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
