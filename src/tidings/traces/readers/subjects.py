"""Subjects and topics with levels: their contents, and filters from patterns with wildcards.

A subject such as ``ev.temp`` becomes the content ``{"level1":"ev","level2":"temp","levels":2,
"subject":"ev.temp"}``, so that a pattern becomes tests on levels: ``ev.*`` wants two levels of
which the first is ``ev``, ``ev.>`` wants two or more.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.traces.readers.json_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectGrammar:
    """How levels are parted, and what stands for one of them or for all the rest."""

    separator: str
    one: str
    rest: str
    rest_may_be_none: bool = False  # whether 'a/#' also wants 'a'


NATS = SubjectGrammar(separator=".", one="*", rest=">")
MQTT = SubjectGrammar(separator="/", one="+", rest="#", rest_may_be_none=True)


def subject_content(subject: Column, grammar: SubjectGrammar) -> Column:
    """Write the content of an event with this subject, as JSON."""
    levels = F.split(subject, f"\\{grammar.separator}")
    number = F.size(levels).cast("string")
    return F.concat(
        F.lit("{"),
        F.array_join(_level_tests(levels), ","),
        F.lit(',"levels":'),
        number,
        F.lit(',"subject":'),
        quoted(subject),
        F.lit("}"),
    )


def subject_filter(pattern: Column, grammar: SubjectGrammar) -> Column:
    """Write the filter that wants what a pattern wants, as JSON."""
    levels = F.split(pattern, f"\\{grammar.separator}")
    open_ended = F.element_at(levels, -1) == grammar.rest
    fixed = F.when(open_ended, F.slice(levels, 1, F.size(levels) - 1)).otherwise(levels)
    least = F.size(fixed) + (0 if grammar.rest_may_be_none else 1)
    number = F.when(
        open_ended, F.concat(F.lit('{"at_least":'), least.cast("string"), F.lit("}"))
    ).otherwise(F.size(levels).cast("string"))
    tests = F.filter(
        F.arrays_zip(fixed.alias("name"), _level_tests(fixed).alias("test")),
        lambda each: each["name"] != grammar.one,
    )
    said = F.array_join(F.transform(tests, lambda each: each["test"]), ",")
    comma = F.when(F.size(tests) > 0, F.lit(",")).otherwise(F.lit(""))
    return F.concat(F.lit("{"), said, comma, F.lit('"levels":'), number, F.lit("}"))


def _level_tests(levels: Column) -> Column:
    """Write every level as a piece of JSON: its name, and what it is."""
    return F.transform(
        levels,
        lambda name, at: F.concat(
            F.lit('"level'), (at + 1).cast("string"), F.lit('":'), quoted(name)
        ),
    )
