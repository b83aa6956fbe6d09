"""What a command is for, read from its source: a list of all of them need not import any."""

from __future__ import annotations

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path


def purpose(module: str, function: str) -> str:
    """What a function of a module says of itself, or the group ``app`` that it makes instead.

    >>> purpose("tidings.cli.check", "check").splitlines()[0]
    'Check a system file; all its problems are reported at once, each with its place.'
    """
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    for each in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        match each:
            case ast.FunctionDef(name=name) if name == function:
                return ast.get_docstring(each) or ""
            case ast.Assign(targets=[ast.Name(id="app")], value=ast.Call(keywords=given)):
                said = next(word.value for word in given if word.arg == "help")
                return inspect.cleandoc(str(ast.literal_eval(said)))
    raise LookupError(f"{module} has neither {function} nor app")
