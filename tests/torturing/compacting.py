"""Puts the days of a store together as one, and drops those older than it keeps."""

from __future__ import annotations

import sys
from pathlib import Path

from tidings.characterisation.count.compacting import compact
from tidings.errors import TidingsError
from tidings.traces.session import spark_session
from torturing.clients import say
from torturing.stepping import heed


def main() -> None:
    heed()
    try:
        with spark_session("local[2]", small=True) as spark:
            compact(spark, Path("out/store"), sizes=((20 * 10**9, 0),), most_uncarried=1)
    except TidingsError as error:
        say(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
