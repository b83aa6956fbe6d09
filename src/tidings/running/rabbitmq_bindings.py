"""Bindings of RabbitMQ: which messages an exchange passes on to a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT = "(default)"  # the exchange without a name

Wants = dict[str, dict[str, str] | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a queue takes from an exchange: all, one routing key, or those of a pattern."""

    exchange: str
    kind: str  # of the exchange
    key: str

    def wants(self) -> list[Wants]:
        """List the filters that say what a queue takes by this binding.

        ``#`` inside a pattern is widened to all that begins alike.

        >>> Binding(exchange="e", kind="topic", key="a.#").wants()
        [{'exchange': 'e', 'key': 'a'}, {'exchange': 'e', 'key': {'nats': 'a.>'}}]
        """
        of: Wants = {"exchange": self.exchange}
        if self.kind == "direct":
            return [{**of, "key": self.key}]
        if self.kind != "topic" or self.key == "#":
            return [of]
        before, hash_, after = self.key.partition("#")
        if not hash_:
            wild = "*" in self.key.split(".")
            return [{**of, "key": {"nats": self.key} if wild else self.key}]
        if after or not before.endswith("."):
            return [{**of, "key": {"prefix": before.split("*")[0]}}] if before else [of]
        stem = before.removesuffix(".")
        exact: Wants = {**of, "key": {"nats": stem} if "*" in stem.split(".") else stem}
        return [exact, {**of, "key": {"nats": f"{stem}.>"}}]

    def takes(self, exchange: str, key: str) -> bool:
        """Test whether a message comes by this binding."""
        if exchange != self.exchange:
            return False
        if self.kind == "direct":
            return key == self.key
        return self.kind != "topic" or fits(self.key.split("."), key.split("."))

    def example(self) -> str:
        """Give a routing key that comes by this binding."""
        if self.kind not in ("direct", "topic"):
            return ""
        words = ["any" if word == "*" else word for word in self.key.split(".")]
        return ".".join(word for word in words if word != "#") or "any"


def fits(pattern: Sequence[str], key: Sequence[str]) -> bool:
    """Test whether a routing key matches a binding pattern: ``*`` is one word, ``#`` any number.

    >>> [fits("a.#.b".split("."), key.split(".")) for key in ("a.b", "a.x.y.b", "a.x", "a.xb")]
    [True, True, False, False]
    """
    reached = {0}  # how many words of the key may have been used up
    for word in pattern:
        if word == "#":
            reached = set(range(min(reached), len(key) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(key) and word in ("*", key[at])}
    return len(key) in reached
