"""A gate's verdict where pipelines look: a table, a Markdown summary, a JUnit file."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from tidings.reporting import wording
from tidings.reporting.budgets import error_text
from tidings.reporting.terminal import (
    FittingTable,
    Row,
    cells,
    fitting,
    names,
    number,
    shares,
)

WORDS = {"meets": "met", "misses": "not met", "undecided": "undecided"}
_AFTER = {
    "meets": "all targets are then met",
    "misses": "targets are still missed after it",
    "undecided": "whether all targets are then met is undecided",
}
_GET = ": they get"  # those who are below target
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]#|~])")


def unmet(document: Row) -> list[Row]:
    """List the subscribers that do not surely get their target, the furthest below it first."""
    return [row for row in document["subscribers"] if row["verdict"] != "meets"]


def gate_table(document: Row, limit: int) -> FittingTable:
    """List who does not get its target, and why."""
    return fitting(
        "Below target",
        unmet(document),
        names("subscriber"),
        names("broker", "at", spare=2),
        shares("target", "target"),
        shares("on time", "on_time"),
        cells("error", error_text),
        cells("verdict", lambda row: WORDS[row["verdict"]], left=True, spare=3),
        cells("main cause", main_cause, left=True),
        limit=limit,
        noun="subscribers",
    )


def sentences(document: Row) -> Iterator[str]:
    """Say of a gate that is not met why, and what to do."""
    if document["causes"]:
        first = document["causes"][0]
        yield (
            f"Why: {first['words']}; without it {_cost(first)} more of "
            "the events of those below target would be on time."
        )
    remedy = document["remedy"]
    if remedy is not None:
        yield f"Do: {wording.gives(remedy, _GET)}; {_AFTER[remedy['verdict']]}."
    if document["least"] is not None:
        yield f"Enough: {wording.gives(document['least'], _GET)}; all targets are then met."


def main_cause(row: Row) -> str:
    """Name what costs a subscriber most, in words; empty where nothing does."""
    if not row["causes"]:
        return ""
    first = row["causes"][0]
    return f"{first['words']} ({_cost(first)})"


def _cost(cause: Row) -> str:
    return wording.percent(number(cause, "cost"), number(cause, "error"))


def markdown(document: Row, title: str, limit: int) -> str:
    """Write the verdict as Markdown, for the summary page of a pipeline."""
    verdict, (better, worse) = WORDS[document["verdict"]], _counts(document)
    parts = [
        f"## Tidings: targets {verdict}, {_plain(title)}",
        f"{_share(document['predicted'], 'on_time')} of all wanted events arrive on time. "
        f"{better} of {wording.plural(better + worse, 'subscriber')} with a target meet it.",
    ]
    rows = unmet(document)
    if rows:
        lines = [
            "| subscriber | at | target | on time | | main cause |",
            "|---|---|--:|--:|---|---|",
        ]
        for row in rows[:limit]:
            share = f"{_share(row, 'on_time')} {error_text(row)}"
            words = WORDS[row["verdict"]], main_cause(row)
            written = (row["subscriber"], row["broker"], _share(row, "target"), share, *words)
            lines.append("| " + " | ".join(map(_plain, written)) + " |")
        parts.append("\n".join(lines))
        if len(rows) > limit:
            shown = f"{limit} of {len(rows)} subscribers below target are shown"
            parts.append(f"{shown} (--json has all).")
    parts += [f"**{head}:** {_plain(text)}" for head, text in _headed(document)]
    return "\n\n".join(parts) + "\n"


def junit(document: Row, title: str) -> str:
    """Write the verdict as JUnit XML: a test case for each subscriber that has a target.

    Where the gate is met although some subscribers are below target, these are skipped tests.
    """
    met = document["verdict"] == "meets"
    rows = document["subscribers"]
    bad = str(len(unmet(document)))
    counts = {"failures": "0" if met else bad, "skipped": bad if met else "0", "errors": "0"}
    counts["tests"] = str(len(rows))
    root = ElementTree.Element("testsuites", {"name": "tidings gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(title), **counts})
    advice = " ".join(sentences(document))
    for row in rows:
        who = {"name": _xml(row["subscriber"]), "classname": _xml(row["broker"])}
        case = ElementTree.SubElement(suite, "testcase", {**who, "time": "0"})
        if row["verdict"] != "meets":
            share = f"{_share(row, 'on_time')} {error_text(row)} on time"
            text = f"{share}, target {_share(row, 'target')}"
            cause = main_cause(row)
            said = f"{text}: {WORDS[row['verdict']]}{'; ' + cause if cause else ''}"
            mark = ElementTree.SubElement(
                case, "skipped" if met else "failure", {"message": _xml(said)}
            )
            mark.text = _xml(advice)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _headed(document: Row) -> Iterator[tuple[str, str]]:
    for sentence in sentences(document):
        head, _, text = sentence.partition(": ")
        yield head, text


def _counts(document: Row) -> tuple[int, int]:
    """Count the subscribers that surely get their target, and those that do not."""
    heads = [(row["verdict"] == "meets", int(row["count"])) for row in document["subscribers"]]
    better = sum(count for meets, count in heads if meets)
    return better, sum(count for _, count in heads) - better


def _share(row: Row, name: str) -> str:
    return wording.percent(number(row, name))


def _plain(text: str) -> str:
    """Escape a text so that Markdown shows it as it is, on one line."""
    clean = _NO_XML.sub("\ufffd", " ".join(str(text).split()))
    return _MARKDOWN.sub(r"\\\1", html.escape(clean, quote=False))


def _xml(text: str) -> str:
    """Replace the characters of a text that XML does not have."""
    return _NO_XML.sub("\ufffd", str(text))
