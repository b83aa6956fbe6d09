"""YAML and JSON texts to plain values, keeping the line of everything, and back.

YAML is read by its version 1.2 rules: ``on`` and ``off`` are words, only ``true`` and ``false`` are
truth values, ``1:30`` is not a number. JSON is a part of YAML and needs no reader of its own.
"""

from __future__ import annotations

import math
import re
from pathlib import Path as FilePath
from typing import Any

import yaml

from tidings.errors import Problem
from tidings.model.document import Name, Path, Place, Unreadable
from tidings.model.json_text import MOST_DEPTH, TOO_DEEP
from tidings.model.plain_files import read_text

# A few nested aliases can otherwise expand without end; honest files have far fewer values.
MOST_VALUES, MOST_VALUES_PER_CHARACTER = 100_000, 10

_STANDARD = "tag:yaml.org,2002:"
_RESOLVER = yaml.resolver.Resolver()
_TAGS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INF = re.compile(r"([-+]?)(\.inf|\.Inf|\.INF)|(\.nan|\.NaN|\.NAN)")
_MOST_DIGITS = 400  # longer whole numbers are no quantities, and slow to convert


class _Converter:
    """Turns the node graph of one text into plain values, noting lines and problems on the way."""

    def __init__(self, characters: int) -> None:
        self.most_values = MOST_VALUES + MOST_VALUES_PER_CHARACTER * characters
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self.values = 0

    def convert(self, node: yaml.Node, path: Path) -> Any:
        self.values += 1
        if self.values > self.most_values or len(path) > MOST_DEPTH:
            raise yaml.YAMLError("YAML aliases that expand too far, or into themselves")
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            value, fits = _scalar(node)
            return value if fits else self._strange(node, path)
        if node.tag != _STANDARD + ("seq" if isinstance(node, yaml.SequenceNode) else "map"):
            return self._strange(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(each, (*path, index)) for index, each in enumerate(node.value)]
        return self._mapping(node, path)

    def _strange(self, node: yaml.Node, path: Path) -> Unreadable:
        """Report a tag that we do not know or that does not fit; give what stands for the value."""
        place = Place(None, path, self.problems, self.lines)
        tag = node.tag.replace(_STANDARD, "!!", 1)
        place.report("a plain value, with no tag or one that fits it", saw=f"the tag {tag}")
        return Unreadable(problem=self.problems[-1])

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                place = Place(None, path, self.problems, self.lines)
                place.report("names as plain texts", saw="a name that is a list or mapping")
                continue
            value, fits = _scalar(key_node)
            key = Name(str(key_node.value), value)
            if not fits:
                self._strange(key_node, (*path, key))
            if key in mapping:
                self.lines[(*path, key)] = key_node.start_mark.line + 1
                place = Place(key, (*path, key), self.problems, self.lines)
                place.report("each name once", saw="the same name a second time")
                continue
            mapping[key] = self.convert(value_node, (*path, key))
            self.lines[(*path, key)] = key_node.start_mark.line + 1
        return mapping


def _scalar(node: yaml.ScalarNode) -> tuple[Any, bool]:
    """Read the value of a node by the rules of YAML 1.2, and whether its tag fits.

    The tag ``!!str`` decides.
    """
    text, quoted = str(node.value), node.style in ("'", '"', "|", ">")
    value = text if quoted else _plain(text)
    tag = node.tag.removeprefix(_STANDARD)
    if type(value) in _TAGS.get(tag, ()):
        return value, True
    guess: str = _RESOLVER.resolve(yaml.ScalarNode, text, (not quoted, quoted))  # type: ignore[no-untyped-call]
    if node.tag == guess:
        return value, True  # the tag is not written there but guessed, by the rules of YAML 1.1
    if tag == "str":
        return text, True
    return _plain(text), type(_plain(text)) in _TAGS.get(tag, ())


def _plain(text: str) -> Any:
    """Read the value of a text without quotes."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) < _MOST_DIGITS:
        if _INT.fullmatch(text):
            return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    special = _INF.fullmatch(text)
    if special:
        return math.nan if special[3] else float(f"{special[1]}inf")
    return text


def _check_depth(text: str) -> None:
    """Refuse what is nested too deeply, event by event: to compose it could exhaust the stack."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_DEPTH:
            raise yaml.MarkedYAMLError(problem=TOO_DEEP, problem_mark=event.start_mark)


def parse(text: str) -> Place:
    """Parse a text into a document; what is wrong with the text itself is among its problems."""
    converter = _Converter(len(text))
    value: Any = None
    try:
        _check_depth(text)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        value = converter.convert(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        converter.problems.append(
            Problem(
                at="the text",
                saw=str(error.problem or error.context),
                want="well-formed YAML or JSON",
                line=mark.line + 1 if mark else None,
            )
        )
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "nesting without end"
        converter.problems.append(
            Problem(at="the text", saw=reason, want="well-formed YAML or JSON")
        )
    return Place(value, (), converter.problems, converter.lines)


def read(path: FilePath, *, follow: bool = True) -> Place:
    """Read the document of a file; an unreadable file is a problem like any other."""
    try:
        return parse(read_text(path, follow=follow))
    except (OSError, ValueError) as error:
        problem = Problem(at=str(path), saw=refusal(error), want="a readable text file")
        return Place(None, (), [problem])


def refusal(error: Exception) -> str:
    """Say why a file could not be read, in one short line."""
    if isinstance(error, UnicodeDecodeError):
        return "bytes that are not UTF-8 text"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (reason.strip().splitlines() or [type(error).__name__])[0].lower()


class _Dumper(yaml.CSafeDumper):
    """Short mappings and lists of plain values on one line, as a person would write them."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    # repr is exact; whole numbers are written without their ".0", which reads better aloud.
    text = repr(value)
    if text.endswith(".0"):
        return dumper.represent_scalar("tag:yaml.org,2002:int", text.removesuffix(".0"))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")  # older readers of YAML want the point
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


def _represent_str(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    # Whatever our own reader would take for something else than text must stand in quotes.
    risky = not isinstance(_plain(value), str) or value != value.strip()
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", str(value), style='"' if risky else None
    )


_Dumper.add_representer(float, _represent_float)
_Dumper.add_representer(str, _represent_str)
_Dumper.add_multi_representer(str, _represent_str)


def dump(document: Any) -> str:
    """Write a plain value as YAML text, in the given order; one line for what is short."""
    return yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
