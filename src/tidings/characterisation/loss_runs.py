"""Whether losses on a link come alone or in a row: a chain of two states, lost and not lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.cells import BATCHES
from tidings.characterisation.partials import adjoining
from tidings.model.standard_errors import share_se
from tidings.model.trace_tables import PROBES
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

# Per (source, target, batch): probes that follow another one, losses among them, probes that follow
# a loss, losses among these; whether the first and the last of the batch were lost; and how many
# rows are copies, which count nowhere else.
LOSS_RUNS = (
    "source string, target string, batch int, following bigint, lost bigint, after_loss bigint, "
    "lost_after_loss bigint, first_lost boolean, last_lost boolean, duplicates bigint"
)
LEAST_AFTER_LOSS = 100  # probes that follow a loss; from fewer nobody can tell
_SURE = 5.0  # standard errors by which losses in a row must exceed chance


def loss_run_statistics(probes: DataFrame, window: TraceWindow) -> DataFrame:
    """How often a loss follows a loss, by directed link, in the order in which probes were sent.

    Probes are put in order within a link *and* a batch; whoever reads this adds the steps from one
    batch to the next from their first and last.
    """
    good = with_reasons(probes, PROBES).where(F.col(REASON).isNull())
    rows = good.select(
        "source",
        "target",
        window.piece(F.col("sent_ns"), BATCHES).alias("batch"),
        "sent_ns",
        "received_ns",
        F.col("received_ns").isNull().alias("is_lost"),
    )
    link = ("source", "target", "batch")
    ordered = Rows.partitionBy(*link).orderBy("sent_ns", "received_ns")
    times = F.struct("sent_ns", "received_ns")
    is_copy = times.eqNullSafe(F.lag(times).over(ordered))
    # What follows a copy follows the row itself as well: they were lost, or not, alike.
    after = F.when(~F.col("is_copy"), F.lag("is_lost").over(ordered))
    stepped = rows.withColumn("is_copy", is_copy).withColumn("after", after)
    return stepped.groupBy(*link).agg(
        F.count("after").alias("following"),
        F.count_if(F.col("after").isNotNull() & F.col("is_lost")).alias("lost"),
        F.count_if(F.col("after")).alias("after_loss"),
        F.count_if(F.col("after") & F.col("is_lost")).alias("lost_after_loss"),
        F.min_by("is_lost", "sent_ns").alias("first_lost"),
        F.max_by("is_lost", "sent_ns").alias("last_lost"),
        F.count_if("is_copy").alias("duplicates"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRuns:
    """How losses of one directed link follow each other.

    >>> LossRuns(following=1000, lost=100, after_loss=100, lost_after_loss=50).burst
    2.0
    """

    following: int
    lost: int
    after_loss: int
    lost_after_loss: int

    @property
    def burst(self) -> float:
        """The mean number of losses in a row, 1/(1 − p) where p of the losses are followed by one.

        Of losses that know nothing of each other it is 1/reliability.
        """
        others = self.after_loss - self.lost_after_loss
        return self.after_loss / others if others else math.inf

    @property
    def burst_se(self) -> float:
        """Its standard error, that of p times 1/(1 − p)²."""
        return float(share_se(self.lost_after_loss, self.after_loss)) * self.burst**2

    @property
    def widening(self) -> float:
        """By how much the standard error of the share lost exceeds that of independent losses.

        Where a loss is ρ likelier after a loss than after none, neighbours at a distance of k are
        correlated by ρᵏ, which makes the variance of their mean (1 + ρ)/(1 − ρ) times as large.

        >>> LossRuns(following=1000, lost=100, after_loss=100, lost_after_loss=10).widening
        1.0
        """
        after_none = self.following - self.after_loss
        if not self.after_loss or not after_none:
            return 1.0
        others = self.lost - self.lost_after_loss
        likelier = self.lost_after_loss / self.after_loss - others / after_none
        likelier = min(max(likelier, 0.0), 1.0 - 1.0 / self.following)
        return math.sqrt((1.0 + likelier) / (1.0 - likelier))

    @property
    def by_chance(self) -> float:
        """The burst of losses as frequent as these that know nothing of each other."""
        return 1.0 / (1.0 - self.lost / self.following)

    @property
    def is_bursty(self) -> bool:
        """Whether losses follow losses surely more often than by chance."""
        share = self.lost / self.following
        error = math.sqrt(share * (1.0 - share) / self.after_loss)
        return self.lost_after_loss / self.after_loss > share + _SURE * error


def loss_runs(rows: pd.DataFrame) -> dict[tuple[str, str], LossRuns]:
    """The runs of every link of which enough losses were seen, batches put together."""
    found = {}
    for (source, target), part in rows.groupby(["source", "target"]):
        ordered = part.sort_values("batch")
        together = adjoining(ordered)
        before = ordered["last_lost"].to_numpy(dtype=bool)[:-1][together]
        after = ordered["first_lost"].to_numpy(dtype=bool)[1:][together]
        runs = LossRuns(
            following=int(part["following"].sum()) + len(after),
            lost=int(part["lost"].sum() + after.sum()),
            after_loss=int(part["after_loss"].sum() + before.sum()),
            lost_after_loss=int(part["lost_after_loss"].sum() + (before & after).sum()),
        )
        if runs.after_loss >= LEAST_AFTER_LOSS and runs.lost_after_loss < runs.after_loss:
            found[str(source), str(target)] = runs
    return found
