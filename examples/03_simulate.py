"""3. Simulate: play the system through and compare it with the prediction."""

from pathlib import Path

import tidings as td

system = td.load(Path(__file__).parent / "city.yaml")
predicted = td.predict(system)
simulated = td.simulate(system, seed=7, events=20_000)

comparison = td.compare(predicted, simulated)
print(f"mean absolute difference: {comparison.summary.mean_absolute:.4f}")
rows = zip(
    predicted.subscribers.to_dict("records"), simulated.subscribers.to_dict("records"), strict=True
)
for theory, played in rows:
    print(
        f"{theory['subscriber']:9} predicted {theory['on_time']:.4f}, "
        f"simulated {played['on_time']:.4f} ± {played['on_time_se']:.4f}"
    )

# One page with both; it opens without a network.
td.write_page(
    td.Report(
        title=system.description,
        system=system,
        outcomes={"predicted": predicted, "simulated": simulated},
    ),
    "city.html",
)
