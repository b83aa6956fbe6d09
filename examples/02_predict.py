"""2. Predict: who gets how much in time, how sure that is, and why not the rest."""

from pathlib import Path

import tidings as td

system = td.load(Path(__file__).parent / "city.yaml")
outcome = td.predict(system, within=0.005)

print(f"on time: {outcome.on_time:.1%} of all events that anybody wants")
for row in outcome.subscribers.to_dict("records"):
    lost = {name: share for name, share in row.items() if name.startswith("lost_") and share}
    why = ", ".join(f"{name} {share:.2%}" for name, share in lost.items())
    sure = f"± {row['error']:.2%} by {row['by']}"
    print(f"{row['subscriber']:9} {row['on_time']:7.2%} {sure}, {row['late']:6.2%} late, {why}")
for row in outcome.brokers.to_dict("records"):
    busy, wait_s = row["utilisation"], row["wait_mean_s"]
    print(f"{row['broker']:9} busy {busy:.0%}, events wait {1000 * wait_s:.0f} ms on average")

# What to know besides: rows that could not be held, what spans too little of what fails.
for remark in outcome.remarks:
    print("note:", remark.sentence())

td.save_outcome(outcome, "predicted.json")
