"""Spoil documents, by seed: their values, their structure, or their bytes.

A document that is a tree (YAML, JSON) is mostly spoilt as one, so that most of what comes out is
still nearly right and gets far into a reader: a value becomes a strange one, a key is left out,
doubled or misspelt, a branch is moved to another place or taken from another document. Any text is
also spoilt as bytes: cut, torn apart, flipped, filled with what readers choke on.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Tree = Any  # mappings, lists and plain values
Branch = tuple[Any, Any]  # a mapping or list, and a key or place in it

STRANGE_VALUES: tuple[Tree, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.0, -0.0, 1e-320, 1e308),
    *(float("inf"), float("-inf"), float("nan"), 0.1, 0.99999999999, 1.0000000001),
    *("", " ", "a", "10m", "99.5%", "1e3s", "-1s", "0s", "1ms", "inf", "nan", ".nan", "~", "null"),
    *("é", "\u202e", "\x00", "\x1b[31m", "\ud800", "a" * 5_000, "a,b", "a--b", "a b", "a\nb", "*"),
    *("=1+1", "'; --", "<b>", "../../etc/passwd", "/dev/zero", "file:///etc/passwd", "{{7*7}}"),
    *([], {}, [[]], [{}], {"": None}, {"a": {"a": {"a": []}}}, [1, "a", None], {"mean": "1s"}),
    *({"exponential": "1s"}, {"exponential": -1}, {"uniform": ["2s", "1s"]}, {"mtbf": "1h"}),
)
TOKENS: tuple[bytes, ...] = (
    *(b"[", b"]", b"{", b"}", b":", b": ", b",", b'"', b"'", b"\\", b"#", b"&a ", b"*a", b"!!int "),
    *(b"- ", b"? ", b"| ", b"> ", b"---\n", b"...\n", b"%YAML 9.9\n", b"<<: ", b"\t", b"\r", b"\n"),
    *(
        b"\x00",
        b"\xff",
        b"\xc3(",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xe2\x80\xae",
        b"1e999",
        b"-",
    ),
    *(
        b"[" * 3_000,
        b"9" * 4_400,
        b"0x",
        b"0b1",
        b"1_0",
        b"12:30:45",
        b"2026-01-01",
        b"NaN",
        b"<!--",
    ),
    *(
        b"<?xml version='1.0'?>",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"&b;",
        b"]]>",
        b"</a>",
        b"</graph>",
    ),
)
AS_TREE = 0.75  # share of documents with a tree that are spoilt as one


def spoilt(chance: random.Random, text: bytes, tree: Tree, others: Sequence[Tree]) -> bytes:
    """Give the document with one to five things wrong; ``tree`` is None for plain texts."""
    if tree is None or chance.random() > AS_TREE:
        return spoilt_bytes(chance, text)
    return json.dumps(spoilt_tree(chance, tree, others), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def spoilt_tree(chance: random.Random, tree: Tree, others: Sequence[Tree]) -> Tree:
    """Give a copy of a tree with one to five things wrong."""
    root = [copy.deepcopy(tree)]
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        branches = list(_branches(root))
        if branches:
            holder, at = chance.choice(branches)
            chance.choice(_TREE_WAYS)(chance, holder, at, [root, *others])
    return root[0] if root else None


def spoilt_bytes(chance: random.Random, text: bytes) -> bytes:
    """Give a text with one to five things wrong in its bytes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        text = chance.choice(_BYTE_WAYS)(chance, text)
    return text


def _branches(tree: Tree) -> Iterator[Branch]:
    """Yield every place of a tree."""
    waiting: list[Tree] = [tree]
    while waiting:
        holder = waiting.pop()
        for at in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, at
            if isinstance(holder[at], dict | list):
                waiting.append(holder[at])


# ---- trees -----------------------------------------------------------------------------------


def _replace(chance: random.Random, holder: Any, at: Any, _trees: Sequence[Tree]) -> None:
    holder[at] = copy.deepcopy(chance.choice(STRANGE_VALUES))


def _leave_out(_chance: random.Random, holder: Any, at: Any, _trees: Sequence[Tree]) -> None:
    del holder[at]


def _rename(chance: random.Random, holder: Any, at: Any, _trees: Sequence[Tree]) -> None:
    if isinstance(holder, dict):
        letters = list(str(at) or "x")
        letters[chance.randrange(len(letters))] = chance.choice("aeiou _-.*:\u00e9")
        holder["".join(letters)] = holder.pop(at)
    else:
        holder.insert(at, holder[at])


def _add(chance: random.Random, holder: Any, _at: Any, trees: Sequence[Tree]) -> None:
    """Add a value under a key that some document has."""
    value = copy.deepcopy(chance.choice(STRANGE_VALUES))
    if isinstance(holder, list):
        holder.append(value)
    else:
        keys = [key for _, key in _branches(chance.choice(trees)) if isinstance(key, str)]
        holder[chance.choice(keys or ["a"])] = value


def _graft(chance: random.Random, holder: Any, at: Any, trees: Sequence[Tree]) -> None:
    """Put a branch of this or another document here."""
    source, key = chance.choice(list(_branches(chance.choice(trees))))
    holder[at] = copy.deepcopy(source[key])


def _wrap(chance: random.Random, holder: Any, at: Any, _trees: Sequence[Tree]) -> None:
    holder[at] = [holder[at]] if chance.random() < 0.5 else {"a": holder[at]}


def _scale(chance: random.Random, holder: Any, at: Any, _trees: Sequence[Tree]) -> None:
    """Make a number, or a number with a unit, much larger, smaller or negative."""
    factor = chance.choice((-1, 0, 1e-12, 1e-3, 0.5, 2, 1e3, 1e12))
    value = holder[at]
    if isinstance(value, int | float) and not isinstance(value, bool):
        holder[at] = value * factor
    elif isinstance(value, str) and value[:1].isdigit():
        number = "".join(letter for letter in value if letter in "0123456789.")
        try:
            holder[at] = f"{float(number) * factor:g}{value[len(number) :]}"
        except ValueError:
            holder[at] = value * 2
    else:
        _replace(chance, holder, at, ())


_TREE_WAYS: tuple[Callable[..., None], ...] = (
    *(_replace, _replace, _scale, _scale, _leave_out, _rename, _add, _graft, _graft, _wrap),
)


# ---- bytes -----------------------------------------------------------------------------------


def _cut(chance: random.Random, text: bytes) -> bytes:
    return text[: chance.randrange(len(text) + 1)]


def _drop(chance: random.Random, text: bytes) -> bytes:
    begin = chance.randrange(len(text) + 1)
    return text[:begin] + text[begin + chance.randrange(1, 40) :]


def _insert(chance: random.Random, text: bytes) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(TOKENS) + text[at:]


def _flip(chance: random.Random, text: bytes) -> bytes:
    if not text:
        return text
    at = chance.randrange(len(text))
    return text[:at] + bytes([text[at] ^ (1 << chance.randrange(8))]) + text[at + 1 :]


def _repeat(chance: random.Random, text: bytes) -> bytes:
    begin = chance.randrange(len(text) + 1)
    end = begin + chance.randrange(1, 200)
    return text[:end] + text[begin:end] + text[end:]


def _swap_lines(chance: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


_BYTE_WAYS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_cut, _drop, _insert, _insert, _flip, _repeat, _swap_lines),
)
