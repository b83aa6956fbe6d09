"""What the notification-loss paper claims, and what our runs say to that."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from studies.notification_loss.experiment import PAPER_RAPIDITY, Results
from tidings.model.study import Finding

NEAR = 0.05  # the paper's own word: "within 5 %"
CLOSE = 0.01  # of the exact expectation, where the closed form is meant to hold


def findings(results: Results) -> Iterator[Finding]:
    """Every claim, as far as the runs can tell."""
    shares = results.shares
    long = shares[shares["stay"] >= 1.0]
    pooled = over_topologies(long)
    worst = pooled.loc[(pooled["closed"] - pooled["sampled"]).abs().idxmax()]
    off = abs(worst["closed"] - worst["sampled"])
    yield Finding(
        section="3.3",
        says="The closed form and the simulation differ by at most 5 % (T_ON of at least "
        "T_sub + T_diff).",
        case="all topologies together",
        found=f"at most {off:.3f}, at T_ON = {worst['stay']:g} (T_sub + T_diff); standard error "
        f"{worst['sampled_se']:.3f}",
        holds=bool(off <= NEAR),
    )
    exact = (long["closed"] - long["exact_all"]).abs().max()
    yield Finding(
        section="3.2",
        says="d depends on the area under the curves only, not on their shape.",
        case="T_ON of at least T_sub + T_diff, against the exact expectation over all couples",
        found=f"the closed form is off by at most {exact:.1e}",
        holds=bool(exact <= CLOSE),
    )
    short = shares[shares["stay"] < 1.0]
    apart = (short["closed"] - short["exact_all"]).abs().max()
    yield Finding(
        section="3.3",
        says="The curves overlap completely for low values of T_ON.",
        case="T_ON below T_sub + T_diff, the closed form continued there",
        found=f"off by up to {apart:.3f}: power laws have the right area and another shape",
        holds=bool(apart <= NEAR),
    )
    r = results.topologies
    yield Finding(
        section="3.3",
        says=f"The rapidity r is {PAPER_RAPIDITY}.",
        case="these networks",
        found=f"r from {r['r'].min():.2f} to {r['r'].max():.2f} with the worst times over origins, "
        f"{r['r_typical'].min():.2f} to {r['r_typical'].max():.2f} with the mean over origins",
        holds=any(r[name].min() <= PAPER_RAPIDITY <= r[name].max() for name in ("r", "r_typical")),
    )
    yield _covering(results.covering)


def _covering(rows: pd.DataFrame) -> Finding:
    mean = rows[rows["stay"] == 1.0].groupby("coverers")[["exact", "messages"]].mean()
    at, sent = mean["exact"], mean["messages"]
    listed = ", ".join(f"{count}: {share:.3f}" for count, share in at.items())
    listed += f"; messages for a subscription from {sent.iloc[0]:.1f} to {sent.iloc[-1]:.1f}"
    return Finding(
        section="3.1",
        says="A subscription contained in another is not sent on (so that it takes effect sooner).",
        case="T_ON = T_sub + T_diff, by number of subscribers with covering filters",
        found=f"d = {listed}",
        holds=bool(at.is_monotonic_increasing and at.iloc[-1] > at.iloc[0]),
    )


def over_topologies(shares: pd.DataFrame) -> pd.DataFrame:
    """Means over topologies by length of stay; errors of the draws combined."""
    rows = []
    for stay, group in shares.groupby("stay", sort=True):
        error = float((group["sampled_se"] ** 2).sum()) ** 0.5 / len(group)
        means = group[["stay_s", "sampled", "exact", "exact_all", "closed"]].mean()
        rows.append({"stay": float(stay), **means, "sampled_se": error})
    return pd.DataFrame(rows)
