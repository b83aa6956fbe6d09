"""Files of which not all was taken in, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tidings.traces.span_folders import SPANS

MOST_NAMED = 3


def file_problems(
    refused: Mapping[str, str], strange: Sequence[str], changed: Sequence[str]
) -> Iterator[str]:
    """Yield what to tell of files that cannot be read, belong to no table, or were read too early.

    >>> list(file_problems({"/in/hops/a.parquet": "torn"}, [], []))
    ['left out, as they cannot be read: /in/hops/a.parquet (torn)']
    """
    spans = [file for file in strange if Path(file).name.startswith(SPANS)]
    others = [file for file in strange if file not in spans]
    if refused:
        named = listed(f"{file} ({why})" for file, why in refused.items())
        yield f"left out, as they cannot be read: {named}"
    if spans:
        yield (
            f"passed over, as they hold spans and no table: {listed(spans)}; watch a folder of "
            f"spans alone, or 'tidings import otlp {Path(spans[0]).parent} --to TRACES' makes "
            "tables of them"
        )
    if others:
        yield (
            f"passed over, as neither they nor their folders are called as a table: "
            f"{listed(others)}; wants names such as hops/0001.jsonl"
        )
    if changed:
        yield (
            f"changed after they were read: {listed(changed)}; what was added is not read: write "
            "files elsewhere, and move them into the folder when they are whole"
        )


def listed(texts: Iterable[str]) -> str:
    """Join the first few texts, and say how many more there are.

    >>> listed("abcde")
    'a; b; c and 2 more'
    """
    each = list(texts)
    more = f" and {len(each) - MOST_NAMED} more" if len(each) > MOST_NAMED else ""
    return "; ".join(each[:MOST_NAMED]) + more
