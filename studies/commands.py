"""The commands ``tidings reproduce NAME``, from settings and words: no study is imported for help.

The fields of a study's settings are the options of its command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
import yaml

from studies.settings.places import USUAL_FOLDER, Folder
from tidings.cli import console, options

NAMES = (
    "content-timeliness",
    "fault-tolerance",
    "mobile-onoff",
    "notification-loss",
    "performance-methodology",
    "published-fits",
    "combined",
)


def words_of(name: str) -> dict[str, Any]:
    """Read what a study says, from the YAML file beside its module."""
    file = Path(__file__).parent / f"{name.replace('-', '_')}.yaml"
    words: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return words


def command(name: str) -> Any:
    """Build the command that runs a study, or None if there is none of this name."""
    if name not in NAMES:
        return None
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(_function(name))
    return typer.main.get_command(alone)


def _function(name: str) -> Callable[..., None]:
    """Make a function that runs and shows the experiment, with a parameter for each setting."""
    words = words_of(name)
    settings: type[Any] = import_module(f"studies.settings.{name.replace('-', '_')}").Settings
    options_of = _parameters(settings, words.get("options", {}))
    usual = {"to": (Folder, USUAL_FOLDER), "json": (options.Json, False)}

    def call(*, to: Path, json: bool, **given: Any) -> None:
        harness = import_module("studies.harness")  # what a study works with is heavy
        experiment = import_module(f"studies.{name.replace('-', '_')}").EXPERIMENT
        harness.check_folder(to)
        own = {"to": to} if "to" in options_of else {}
        with console.progress("reproducing") as step:
            study = experiment.run(settings(**given, **own), step)
        harness.present(study, to, json=json)

    parameters = [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)
        for each, (hint, default) in {**options_of, **usual}.items()
    ]
    call.__doc__ = f"{words['purpose']}\n\nExample: tidings reproduce {name} {words['example']}"
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _parameters(settings: type[Any], words: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Find type and usual value of every setting that is an option."""
    hints = get_type_hints(settings, include_extras=True)
    parameters = {}
    for each in fields(settings):
        hint, required = hints[each.name], each.default is MISSING
        if each.name in words:
            hint = Annotated[hint, _option(each.name, hint, words[each.name], required=required)]
        if get_origin(hint) is Annotated:  # others are no options
            parameters[each.name] = (hint, inspect.Parameter.empty if required else each.default)
    return parameters


# Options: their types and usual values are fields of the settings, their words in the YAML file.


def _option(name: str, hint: Any, words: str | Mapping[str, Any], *, required: bool) -> Any:
    """Declare the option of a setting; a field in seconds (``_s``) is given as a time."""
    more: dict[str, Any] = {"help": words} if isinstance(words, str) else dict(words)
    kinds = {each for each in (get_args(hint) or (hint,)) if each is not type(None)}
    if required:
        return typer.Argument(metavar="FOLDER", **more)
    names = [f"--{more.pop('name', name.removesuffix('_s')).replace('_', '-')}"]
    if "one of" in more:
        choices = more.pop("one of")
        more |= {"metavar": "|".join(choices), "callback": _one_of(choices)}
    elif float in kinds and name.endswith("_s"):
        more |= {"metavar": "TIME", "parser": _time}
    elif kinds & {int, float}:
        more = {"metavar": "N", "min": 1 if int in kinds else None, **more}
    elif bool in kinds:
        names = names if not more.pop("or not", False) else []
    return typer.Option(*names, **{"metavar": None if bool in kinds else "PATH", **more})


def _time(given: str | float) -> float:
    return given if isinstance(given, float) else options.seconds(given)


def _one_of(words: Iterable[str]) -> Callable[[str | None], str | None]:
    def check(given: str | None) -> str | None:
        if given is not None and given not in words:
            raise typer.BadParameter(f"'{given}' is not one of {', '.join(words)}")
        return given

    return check
