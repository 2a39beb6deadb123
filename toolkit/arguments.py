"""The command line of a recipe: presets, YAML files and flags become its configuration.

A later source wins: defaults < ``--preset`` < ``--config`` < flags. An unknown key is an error that
names the nearest one; abbreviations are not accepted, so a typo can never set something else.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import types
import typing
from argparse import SUPPRESS
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolkit.config import ConfigT, Invocation, RunConfig, check_values, leaf_types
from toolkit.config_files import check_keys, nearest_key, one_line, preset_file, read_yaml
from toolkit.errors import UserError
from toolkit.run_origin import check_recipe


def parse_arguments(
    config_class: type[ConfigT], recipe_file: str | Path, argv: list[str]
) -> Invocation[ConfigT]:
    """Read a recipe's command line.

    Besides the fields of ``config_class`` (``--train.epochs 2``, or ``--epochs 2`` where only one
    section has a key of that name; dashes and underscores are the same; a bool needs no value) it
    knows ``--preset NAME`` (``presets/<recipe>/<NAME>.yaml`` beside the recipe), ``--config FILE``
    and ``--resume RUN_DIRECTORY``.

    Raises:
        UserError: unknown key (names the nearest one), value of the wrong type, missing file or
            preset, or a flag given together with ``--resume``.
        SystemExit: after ``--help`` and ``--print_config``.
    """
    recipe_file = Path(recipe_file)
    known = leaf_types(config_class)
    flags = _canonical_flags(argv, known)
    resume = flags.pop_value("resume")
    if resume is not None:
        return Invocation(
            _resumed_config(config_class, recipe_file, Path(resume), flags), Path(resume)
        )
    files = []
    if (preset := flags.pop_value("preset")) is not None:
        files.append(preset_file(recipe_file, preset))
    if (config_file := flags.pop_value("config")) is not None:
        files.append(Path(config_file))
    config_flags = []
    for file in files:
        content = read_yaml(file)
        check_keys(content, config_class, where=str(file))
        if content:  # jsonargparse refuses a file of comments alone
            config_flags.append(f"--config={file}")
    given = {token[2:].partition("=")[0] for token in flags.tokens if token.startswith("--")}
    config = _parse(config_class, recipe_file, config_flags + flags.tokens)
    return Invocation(config, None, frozenset(given & set(known)))


def load_config(config_class: type[ConfigT], file: Path) -> ConfigT:
    """Read a configuration written by ``save_config``; every key is checked."""
    check_keys(read_yaml(file), config_class, where=str(file))
    return _parse(config_class, file, [f"--config={file}"])


_COMMAND_OPTIONS = ("preset", "config", "resume", "help", "print_config")


@dataclass
class _Flags:
    """Command-line tokens with canonical names; options of the command itself can be taken out."""

    tokens: list[str]

    def pop_value(self, name: str) -> str | None:
        """Remove ``--name VALUE`` or ``--name=VALUE`` and return the value."""
        values, rest, waiting = [], [], False
        for token in self.tokens:
            if waiting:
                values.append(token)
                waiting = False
            elif token == f"--{name}":
                waiting = True
            elif token.startswith(f"--{name}="):
                values.append(token.split("=", 1)[1])
            else:
                rest.append(token)
        if waiting:
            raise UserError(f"--{name} needs a value")
        if len(values) > 1:  # only one could count, and the other would be ignored in silence
            raise UserError(f"--{name} was given {len(values)} times: {', '.join(values)}")
        self.tokens = rest
        return values[0] if values else None


def _canonical_flags(argv: list[str], known: dict[str, Any]) -> _Flags:
    tokens: list[str] = []
    for position, token in enumerate(argv):
        if not token.startswith("--"):
            tokens.append(token)
            continue
        name, equals, value = token[2:].partition("=")
        name = _full_name(name.replace("-", "_"), known)
        if name not in known and name not in _COMMAND_OPTIONS:
            raise UserError(f"unknown option '{token}'. {nearest_key(name, known, flag=True)}")
        following = argv[position + 1] if position + 1 < len(argv) else "--"
        bare_bool = known.get(name) is bool and not equals and following.startswith("-")
        tokens.append(f"--{name}=true" if bare_bool else f"--{name}{equals}{value}")
    return _Flags(tokens)


def _full_name(name: str, known: dict[str, Any]) -> str:
    """A key of one section written without it, with it: epochs is train.epochs.

    Raises:
        UserError: several sections have a key of that name.
    """
    if name in known or name in _COMMAND_OPTIONS or "." in name:
        return name
    meant = [key for key in known if key.rsplit(".", 1)[-1] == name]
    if len(meant) > 1:
        raise UserError(f"--{name} may mean {' or '.join(f'--{key}' for key in meant)}: give one")
    return meant[0] if meant else name


def _resumed_config(
    config_class: type[ConfigT], recipe_file: Path, run: Path, flags: _Flags
) -> ConfigT:
    if not (run / "config.yaml").is_file():
        raise UserError(f"--resume {run}: not a run directory (it has no config.yaml)")
    if flags.tokens:
        raise UserError(
            f"--resume continues {run} exactly as it was started, so it takes no other option; "
            f"found: {' '.join(flags.tokens)}. Leave them out, or start a new run."
        )
    try:
        return load_config(config_class, run / "config.yaml")
    except UserError:  # where they are another recipe's settings, that is what is wrong
        check_recipe(run, recipe_file.stem)
        raise


def _parse(config_class: type[ConfigT], recipe_file: Path, argv: list[str]) -> ConfigT:
    from argparse import RawDescriptionHelpFormatter

    from jsonargparse import (
        ArgumentError,
        ArgumentParser,
        DefaultHelpFormatter,
        set_parsing_settings,
    )

    class Formatter(DefaultHelpFormatter, RawDescriptionHelpFormatter):
        """A recipe's description keeps its lines: they are commands to copy."""

    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser = ArgumentParser(
        prog=recipe_file.name,
        exit_on_error=False,
        formatter_class=Formatter,
        allow_abbrev=False,
        usage=f"{recipe_file.name} [--preset NAME] [--config FILE] [--resume RUN] [--KEY VALUE]",
        description=_recipe_description(recipe_file),
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the keys below.")
    # Both are handled before jsonargparse sees the command line; they stand here for --help.
    parser.add_argument("--preset", help=_preset_help(recipe_file))
    parser.add_argument("--resume", help="Run directory to continue exactly where it stopped.")
    parser.add_class_arguments(config_class, nested_key=None)
    _show_own_settings_first(parser, config_class)
    try:
        parsed = parser.parse_args(argv)
    except ArgumentError as error:
        raise UserError(_readable(str(error), leaf_types(config_class))) from None
    values = parser.instantiate(parsed)
    config = config_class(
        **{key.name: values[key.name] for key in dataclasses.fields(config_class)}
    )
    _refuse_null(config)
    check_values(config)
    return config


def _show_own_settings_first(parser: Any, config_class: type) -> None:
    """In --help: the recipe's settings, its data, then what it shares with all recipes.

    dataclasses have the fields of base classes first.
    """
    places = {
        name: place
        for place, base in reversed(list(enumerate(config_class.__mro__)))
        for name in inspect.get_annotations(base)
    }
    nested = {name.split(".")[0] for name in leaf_types(config_class) if "." in name}
    for group in parser._action_groups:
        group._group_actions.sort(key=lambda action: places.get(action.dest, -1))
        for action in group._group_actions:
            # A file for one section alone; the keys of what only presets give.
            if action.dest in nested or action.dest.endswith(".help"):
                action.help = SUPPRESS
            elif action.dest == "published":
                action.metavar = "RESULT"  # one line for it is enough


def _refuse_null(config: RunConfig) -> None:
    """jsonargparse takes null for a list."""
    for name, kind in leaf_types(type(config)).items():
        if types.NoneType not in typing.get_args(kind):
            value = functools.reduce(getattr, name.split("."), config)
            if value is None:
                raise UserError(f"--{name} null: expected {_in_words(kind)}")


def _recipe_description(recipe_file: Path) -> str | None:
    if recipe_file.suffix != ".py" or not recipe_file.is_file():
        return None
    import ast

    return ast.get_docstring(ast.parse(recipe_file.read_text(encoding="utf-8")))


def _preset_help(recipe_file: Path) -> str:
    folder = recipe_file.parent / "presets" / recipe_file.stem
    names = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
    return f"Settings kept beside the recipe: {names or 'none yet'}."


def _readable(message: str, known: dict[str, Any]) -> str:
    """jsonargparse names Python types; a person at the command line reads words."""
    wrong = re.match(
        r'Parser key "(?P<key>[\w.]+)":.*(Got|Given) value: (?P<value>.*)', message, re.DOTALL
    )
    if wrong is None or wrong["key"] not in known:
        return one_line(message)
    value = one_line(wrong["value"]).replace("None", "null")
    return f"--{wrong['key']} {value}: expected {_in_words(known[wrong['key']])}"


def _in_words(kind: Any) -> str:
    """``int | None`` -> ``a whole number or null``."""
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, typing.get_args(kind)))}"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(_in_words(member) for member in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return 'a list, such as ["a", "b"]'
    if dataclasses.is_dataclass(kind):
        return f"keys and values ({', '.join(key.name for key in dataclasses.fields(kind))})"
    words = {
        int: "a whole number", float: "a number", str: "a text", bool: "true or false",
        types.NoneType: "null",
    }  # fmt: skip
    return words.get(kind, str(kind))
