"""``tidings reproduce mobile-onoff``."""

from __future__ import annotations

from tidings.cli import console, options
from tidings.cli.reproduce.presenting import USUAL_FOLDER, Folder, present
from tidings.reproduction.mobile_onoff import experiment
from tidings.reproduction.mobile_onoff.exhibits import study
from tidings.reproduction.saving import check_folder


def mobile_onoff(to: Folder = USUAL_FOLDER, json: options.Json = False) -> None:
    """Peers that come and go: response time against rate, and end to end (Table 3).

    Example: [bold]tidings reproduce mobile-onoff --to mobile[/]
    """
    check_folder(to)
    with console.progress("reproducing") as step:
        results = experiment.reproduce(step)
    present(study(results), to, json=json)
