"""The table of docs/evidence/samples.md: every sample's truth beside what is predicted.

    python studies/dataset/measure.py [FOLDER]

Of the samples that come with the package, or of those that were made into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from studies.dataset.comparing import compared
from tidings.samples.loading import load_sample, sample_names
from tidings.traces.session import spark_session


def main() -> None:
    """Print a row for every subscriber of every sample."""
    folder = sys.argv[1] if len(sys.argv) > 1 else None
    print("| sample | subscriber | events wanted | on time | predicted, as stated | "
          "learnt and predicted | standard error | off by |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    with spark_session("local[2]", small=True) as spark:
        for name in sample_names(folder):
            for who, row in compared(spark, load_sample(name, folder)).iterrows():
                shares = " | ".join(
                    f"{row[each]:.3f}" for each in ("truth", "stated", "learnt", "error")
                )
                print(f"| {name} | {who} | {row['events']:.0f} | {shares} | {row['off']:+.1f} |",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
