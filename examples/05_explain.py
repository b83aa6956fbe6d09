"""5. Explain: what costs how much, and what if something changed?"""

import json
from pathlib import Path

import tidings as td
from tidings.planning.budget import explain
from tidings.planning.evidence import foretell
from tidings.planning.scenarios import Scenario, difference

system = td.load(Path(__file__).parent / "city.yaml")

# What a cause costs is what would be gained without it.
budget = explain(system)
for each in budget.totals:
    print(f"{each.cost:+.2%} on time without {each.cause.words}")
print(f"the busiest broker is {budget.bottleneck['broker']}")
print(f"what helps most: {budget.remedies[0].change} ({budget.remedies[0].gain:+.2%})")
Path("budget.json").write_text(json.dumps(budget.to_document()))

rush = Scenario(name="rush hour", changes=("rate exchange x1.1", "add 100 like trader at hub"))
found = difference(system, rush, foretell)
for row in found.subscribers().to_dict("records"):
    print(
        f"{row['subscriber']:24} {row['on_time_before']:.3f} → {row['on_time_after']:.3f}"
        f"  {row['why']}"
    )
Path("whatif.json").write_text(json.dumps({"predicted": found.to_document()}))
