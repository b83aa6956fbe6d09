"""6. Plan: what should be changed so that everybody gets what they should?"""

import json
from pathlib import Path

import tidings as td
from tidings.planning.admission import Admissions, newcomer_like
from tidings.planning.capacity import least_speed
from tidings.planning.deadlines import shortest_lifetimes
from tidings.planning.evidence import Target, weigh
from tidings.reporting.annexes import load_annex

system = td.load(Path(__file__).parent / "city.yaml")
target = Target(share=0.9, of=0.9)  # nine tenths of the subscribers, nine tenths of their events
print("as it is:", weigh(system, target))


def play(plan, precision):
    """Simulate a plan as precisely as decides it, for two CPU seconds at most."""
    return td.simulate(plan, seed=1, precision=precision, seconds=2.0)


# How fast must all brokers be? What theory leaves open is simulated.
capacity = least_speed(system, target, play=play)
assert capacity.choice is not None
print(f"{capacity.choice.size:.2f} times as fast:", capacity.choice.evidence)

# What can be promised as things are; None where too much is lost for any lifetime.
for row in shortest_lifetimes(system, [0.9, 0.95], play=play).table.to_dict("records"):
    print(f"{row['subscriber']:9} 90 %: {row['p90_s']:.3f} s, 95 %: {row['p95_s']:.3f} s")

# May a thousand traders more join?
desk = Admissions(system=capacity.plan, target=target)
answer = desk.ask(newcomer_like(system, "trader", 1000), target=0.9)
print("admitted at", answer.choice.broker if answer.choice else "no broker")

# The report shows budget, what-if and plan beside the outcome.
Path("capacity.json").write_text(json.dumps(capacity.to_document()))
Path("admission.json").write_text(json.dumps(answer.to_document()))
files = [Path(name) for name in ("budget.json", "whatif.json", "capacity.json", "admission.json")]
report = td.Report(
    title="a small city, and what to do about it",
    system=system,
    outcomes={"predicted": td.predict(system)},
    sections=[load_annex(each) for each in files if each.exists()],
)
print("the page:", td.write_page(report, "plan.html"))
