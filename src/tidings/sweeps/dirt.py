"""Rows that are spoilt on purpose, so that what is made of traces can be tried on bad ones."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.errors import InvalidInputError

SPOILT = ("publications", "hops", "deliveries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirt:
    """Shares of rows that are spoilt: written twice, without an id, with a time before 0."""

    twice: float = 0.0
    nameless: float = 0.0
    impossible: float = 0.0

    def __post_init__(self) -> None:
        shares = (self.twice, self.nameless, self.impossible)
        if min(shares) < 0 or sum(shares) > 1:
            raise InvalidInputError(
                f"dirt: got shares of {', '.join(f'{share:g}' for share in shares)}; wants shares "
                "of 0 or more, at most 1 together"
            )

    @property
    def kept(self) -> float:
        """The share of rows that can still be used."""
        return 1.0 - self.nameless - self.impossible


CLEAN = Dirt()


def spoil(frame: DataFrame, name: str, dirt: Dirt, seed: int) -> DataFrame:
    """Damage some rows of a table, each by at most one of the kinds of dirt."""
    if dirt == CLEAN or name not in SPOILT:
        return frame
    first_time = next(column for column in frame.columns if column.endswith("_ns"))
    who = [F.col(column) for column in frame.columns if column != "sent_to"]
    chance = uniform(seed, f"dirt of {name}", *who)
    rows = frame.withColumn("chance", chance)
    twice, nameless = dirt.twice, dirt.twice + dirt.nameless
    bad = (F.col("chance") >= nameless) & (F.col("chance") < nameless + dirt.impossible)
    lost_id = (F.col("chance") >= twice) & (F.col("chance") < nameless)
    copies = F.when(F.col("chance") < twice, F.array(F.lit(0), F.lit(1))).otherwise(
        F.array(F.lit(0))
    )
    return rows.withColumns(
        {
            "event": F.when(~lost_id, F.col("event")),
            first_time: F.when(bad, -F.col(first_time)).otherwise(F.col(first_time)),
            "copy": F.explode(copies),
        }
    ).select(*frame.columns)


def uniform(seed: int, purpose: str, *of: Column) -> Column:
    """Compute a number in (0, 1), the same for the same seed, purpose and values on any machine."""
    hashed = F.xxhash64(F.lit(f"{seed} {purpose}"), *of)
    # A second time, as one hash of similar values is not quite as good as random.
    bits = F.shiftrightunsigned(F.xxhash64(hashed), 11)
    return (bits.cast("double") + F.lit(0.5)) * F.lit(2.0**-53)
