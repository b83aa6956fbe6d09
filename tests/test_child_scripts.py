"""Scripts that tests hand to other processes name what there is; to linters they are text.

Many of them run only by night, or by hand.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "tidings"
_IMPORTS = re.compile(rf"(import|from) {PACKAGE}")
_QUOTED = re.compile(rf"[\"'](import|from) {PACKAGE}")


def scripts(file: Path) -> Iterator[ast.Module]:
    """The programs that a file holds as text; what is filled in when it runs counts as a number."""
    source = file.read_text(encoding="utf-8")
    if not _QUOTED.search(source) and not any(map(_IMPORTS.search, source.split('"""')[1::2])):
        return  # quicker than to parse it
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            pieces = [
                each.value if isinstance(each, ast.Constant) else "(0)" for each in node.values
            ]
            text = "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if _IMPORTS.search(text):
            try:
                yield ast.parse(text)
            except SyntaxError:
                continue  # prose, or a pattern


def missing(script: ast.Module) -> list[str]:
    """What a script imports, asks or calls of the package and is not there, or not so."""
    known: dict[str, Any] = {}
    wrong = [problem for node in ast.walk(script) for problem in _not_imported(node, known)]
    for node in ast.walk(script):
        if isinstance(node, ast.Attribute):
            try:
                _value(node, known)
            except AttributeError as problem:
                wrong.append(str(problem))
        elif isinstance(node, ast.Call):
            wrong += _not_taken(node, known)
    return wrong


def _not_imported(node: ast.AST, known: dict[str, Any]) -> list[str]:
    """What cannot be imported of the package; the rest becomes known by the names it gets."""
    wrong = []
    if isinstance(node, ast.Import):
        for each in node.names:
            if _is_ours(each.name):
                module = _module(each.name)
                known[each.asname or PACKAGE] = module if each.asname else _module(PACKAGE)
    elif isinstance(node, ast.ImportFrom) and _is_ours(node.module):
        module = _module(str(node.module))
        for each in node.names:
            try:
                known[each.asname or each.name] = each.name != "*" and _member(module, each.name)
            except AttributeError as problem:
                wrong.append(str(problem))
    return wrong


def _is_ours(name: str | None) -> bool:
    return (name or "").partition(".")[0] == PACKAGE


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _member(module: Any, name: str) -> Any:
    if hasattr(module, name):
        return getattr(module, name)
    try:
        return _module(f"{module.__name__}.{name}")
    except ModuleNotFoundError as problem:
        raise AttributeError(f"{module.__name__} has no {name}") from problem


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """What a name stands for, where it is a thing of the package; None for all others."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        of = _value(node.value, known)
        if inspect.ismodule(of):
            return _member(of, node.attr)
    return None


def _not_taken(call: ast.Call, known: dict[str, Any]) -> list[str]:
    """What a call gives that its function does not take, or leaves out that it needs."""
    try:
        called = _value(call.func, known)
        signature = inspect.signature(called)
    except (AttributeError, TypeError, ValueError):
        return []
    if any(isinstance(each, ast.Starred) for each in call.args):
        return []
    if any(each.arg is None for each in call.keywords):
        return []
    try:
        signature.bind(*call.args, **{str(each.arg): each for each in call.keywords})
    except TypeError as problem:
        return [f"{ast.unparse(call.func)}: {problem}"]
    return []


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "studies", "src"])
def test_what_child_scripts_name_is_there(folder: str) -> None:
    wrong = {
        str(file.relative_to(ROOT)): found
        for file in sorted((ROOT / folder).rglob("*.py"))
        if file != Path(__file__)
        if (found := [each for script in scripts(file) for each in missing(script)])
    }
    assert wrong == {}


SCRIPT = """
import tidings as td
from tidings.watching import rounds
rounds.WatchPlan(closing=1, system=td.load("a"), name="b", folder=1)
"""


@pytest.mark.parametrize(
    ("was", "is_now", "said"),
    [
        ("WatchPlan", "Plan", "no Plan"),
        ("import rounds", "import round", "no round"),
        ("name=", "called=", "argument"),
        ("td.load", "td.loaded", "no loaded"),
        ("WatchPlan", "WatchPlan", ""),
    ],
)
def test_what_is_not_there_is_found(was: str, is_now: str, said: str) -> None:
    found = missing(ast.parse(SCRIPT.replace(was, is_now)))
    assert said in " ".join(found)
    assert bool(found) == bool(said)
