"""4. Learn: from the traces of a system to its description, on Spark."""

from dataclasses import replace
from pathlib import Path

import tidings as td

city = td.load(Path(__file__).parent / "city.yaml")
# Traces tell of single subscribers, so one of each kind is enough.
system = replace(city, subscribers=tuple(replace(each, count=1) for each in city.subscribers))

# Two minutes of "reality"; docs/reference/readers.md has the formats of logs that can be imported.
recording = td.record(system, seed=3, duration_s=120.0)
td.write_traces(recording, "traces")

with td.spark_session(small=True) as spark:
    learnt = td.characterise(td.read_traces(spark, "traces"), base=system)

rows = learnt.parameters.set_index("path")
for path in ("brokers.hub.service", "links.hub--east.delay", "publishers.exchange.rate"):
    row = rows.loc[path]
    print(f"{path}: {row['estimate']:.4g} ± {row['standard_error']:.2g} {row['unit']}")

# Standard errors of parameters become error bars of the prediction (docs/reference/errors.md).
fitted = td.predict(learnt.system, error_bars=True)
for row in fitted.subscribers.to_dict("records"):
    print(f"{row['subscriber']:9} {row['on_time']:.3f} ± {row['on_time_se']:.3f}")
td.save(learnt.system, "fitted.yaml")
