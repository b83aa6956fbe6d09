"""Subscriptions of a recorded run as trace rows: who came and went, and when brokers learnt of it.

Every stay is a subscription of its own. Recorded is how new subscriptions spread, not what brokers
are sent later because a subscription that covered it has ended. Who comes and goes is followed to
the last event, beyond the window: else the last notifications would seem illegal.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa

from tidings.model.trace_files import subscription_table, trace_table
from tidings.simulation.network import CompiledSystem
from tidings.simulation.tapes import EPOCH_NS, Tapes, nanoseconds, turns_in_window
from tidings.simulation.world import Window


def subscription_rows(compiled: CompiledSystem, tapes: Tapes, window: Window) -> pa.Table:
    """The table ``subscriptions`` where some come and go, in the order of time."""
    everyone = compiled.system.subscribers
    lasting = subscription_table([each for each in everyone if each.stays is None], EPOCH_NS)
    turns = _turns(compiled, tapes, window)
    rows = pd.concat([turns, _learnt(compiled, tapes, window, turns)], ignore_index=True)
    churners = [everyone[index] for index, _ in compiled.churn.churners]
    names = np.array([each.name for each in churners], dtype=object)[rows["churner"]]
    filters = subscription_table(churners, EPOCH_NS)["filter"].to_numpy()[rows["churner"]]
    columns = {
        "subscription": names + "/" + rows["stay"].astype(str).to_numpy(),
        "subscriber": names,
        "broker": rows["broker"],
        "action": rows["action"],
        "at_ns": rows["at_ns"],
        "filter": np.where(rows["action"] == "subscribe", filters, None),
    }
    return pa.concat_tables([lasting, trace_table("subscriptions", columns)]).sort_by("at_ns")


def _turns(compiled: CompiledSystem, tapes: Tapes, window: Window) -> pd.DataFrame:
    """Every coming and going, by churner and number of the stay."""
    what, is_on, at_ns = turns_in_window(tapes.turns, window, until_s=math.inf)
    churner = -1 - what - int(compiled.numbers["first_churner"])
    turns = pd.DataFrame({"churner": churner, "is_on": is_on, "at_ns": at_ns})[churner >= 0]
    turns["stay"] = turns.groupby("churner")["is_on"].cumsum()
    # Whoever is away when the window begins has not been seen to leave.
    turns = turns[turns["stay"] > 0].reset_index(drop=True)
    homes = [compiled.system.subscribers[index].at for index, _ in compiled.churn.churners]
    turns["broker"] = np.array(homes, dtype=object)[turns["churner"]]
    turns["action"] = np.where(turns["is_on"] == 1, "subscribe", "unsubscribe")
    return turns


def _learnt(
    compiled: CompiledSystem, tapes: Tapes, window: Window, turns: pd.DataFrame
) -> pd.DataFrame:
    """When brokers learnt of what was subscribed in the window, by churner and number of the stay.

    What began so late that the run may have ended before all had heard of it is left out.
    """
    taped = tapes.learnt[tapes.learnt["since"] > window.warmup_s]
    longest_s = (taped["learnt"] - taped["since"]).max(initial=0.0)
    taped = taped[taped["since"] <= tapes.now_s - longest_s]
    brokers = np.array([each.name for each in compiled.system.brokers], dtype=object)
    learnt = pd.DataFrame(
        {
            "churner": compiled.tables["pieces"]["churner"][taped["piece"]],
            "since_ns": nanoseconds(taped["since"], window),
            "broker": brokers[taped["broker"]],
            "action": "learnt",
            "at_ns": nanoseconds(taped["learnt"], window),
        }
    )
    began = turns[turns["is_on"] == 1][["churner", "at_ns", "stay"]]
    return learnt.merge(began.rename(columns={"at_ns": "since_ns"}), on=["churner", "since_ns"])
