"""Settings come in layers: defaults < base.yaml < the named YAML files < environment ``WEIR_*`` < ``--set a.b=v``.

``resolve`` merges them, remembers where each value came from, validates all of it at once and names what it does
not know together with the nearest name that it does.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import json
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from jobs.runtime.errors import SettingsError

Model = TypeVar("Model", bound=BaseModel)
ENVIRONMENT_PREFIX = "WEIR_"
RESERVED_ENVIRONMENT = frozenset({"WEIR_MAVEN_REPOSITORY", "WEIR_RUN_ID"})
"""Environment names that start with the prefix but are no settings."""


@dataclass(frozen=True)
class Layer:
    """A mapping of settings and the name of where it came from."""

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Resolved(Generic[Model]):
    """Validated settings, with the origin of every value that a layer gave (dotted path -> origin)."""

    settings: Model
    origins: Mapping[str, str]

    def origin_of(self, path: str) -> str:
        """Where the value at a dotted path came from; ``default`` if no layer gave it."""
        while path:
            if path in self.origins:
                return self.origins[path]
            path = path.rpartition(".")[0]
        return "default"


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice (the second would silently win) and leaves dates as text.

    No setting is a date, and a batch is often called by one (``batch: 2024-03-10``).
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, typing.Hashable):
                continue  # the parent class refuses it
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> Layer:
    """One YAML file as a layer.

    Raises:
        SettingsError: if the file is missing, unreadable, no YAML, or not a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError(
            f"settings file '{path}' does not exist; write one with: weir init FOLDER_OF_DATA"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file '{path}' can't be read: {error}") from None
    return Layer(str(path), parse_yaml(text, str(path)))


def parse_yaml(text: str, origin: str) -> dict[str, Any]:
    """YAML text as a mapping; ``origin`` names it in errors."""
    try:
        values = yaml.load(text, _Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise SettingsError(f"{origin} is not valid YAML: {_yaml_problem(error)}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"{origin} must hold settings by name, but holds a {type(values).__name__}")
    return values


def environment_layers(environment: Mapping[str, str]) -> list[Layer]:
    """``WEIR_A__B=value`` gives ``a.b``; values are read as YAML, so ``{documents: 5}`` is a mapping."""
    layers = []
    for name in sorted(environment):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in RESERVED_ENVIRONMENT:
            path = [part.lower() for part in name[len(ENVIRONMENT_PREFIX) :].split("__")]
            layers.append(Layer(f"environment {name}", _nested(path, _scalar(environment[name], name))))
    return layers


def assignment_layers(assignments: Sequence[str]) -> list[Layer]:
    """``a.b=value`` as given with ``--set``; values are read as YAML; ``decide.0.name`` goes into a list.

    Raises:
        SettingsError: for an assignment without ``=`` or without a name.
    """
    layers = []
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise SettingsError(f"--set takes NAME=VALUE, got '{assignment}'")
        origin = f"--set {name.strip()}"
        layers.append(Layer(origin, _nested(name.strip().split("."), _scalar(value, origin))))
    return layers


def resolve(model: type[Model], layers: Iterable[Layer]) -> Resolved[Model]:
    """Merge layers in order (mappings merge, everything else replaces) and validate the result.

    Raises:
        SettingsError: listing every problem, each with its dotted path, where it came from, and for an unknown
            name the nearest known one.
    """
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        try:
            _merge(merged, layer.values, layer.origin, origins, ())
        except RecursionError:
            raise SettingsError(f"{layer.origin}: a YAML alias (*name) stands inside of what it names") from None
    try:
        return Resolved(model.model_validate(merged), origins)
    except ValidationError as error:
        raise SettingsError(_problems(model, error, origins)) from None


def fingerprint(values: Any) -> str:
    """SHA-256 (hex) of settings as canonical JSON: sorted names, no spaces."""
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()


def canonical_json(values: Any) -> str:
    """Settings as JSON with sorted names: equal settings give equal text."""
    if isinstance(values, BaseModel):
        values = values.model_dump(mode="json")
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _scalar(text: str, origin: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise SettingsError(f"{origin}: '{text}' is not a valid value: {_yaml_problem(error)}") from None


def _yaml_problem(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split()).replace('in "<unicode string>", ', "at ")


def _nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    return dict(value)


def _merge(
    target: dict[str, Any], values: Mapping[str, Any], origin: str, origins: dict[str, str], path: tuple[str, ...]
) -> None:
    for key, value in values.items():
        here = (*path, str(key))
        existing = target.get(key)
        if isinstance(value, Mapping) and isinstance(existing, list) and all(str(k).isdigit() for k in value):
            target[key] = _merge_list(existing, value, origin, origins, here)
        elif isinstance(value, Mapping) and isinstance(existing, dict):
            _merge(existing, value, origin, origins, here)
        elif isinstance(value, Mapping) and value:
            target[key] = {}
            _merge(target[key], value, origin, origins, here)
        else:
            dotted = ".".join(here)
            for stale in [known for known in origins if known.startswith(dotted + ".")]:
                del origins[stale]
            target[key] = copy.deepcopy(value)  # a later layer may change an entry of it
            origins[dotted] = origin


def _merge_list(
    existing: list[Any], values: Mapping[str, Any], origin: str, origins: dict[str, str], path: tuple[str, ...]
) -> list[Any]:
    """Assignments such as ``decide.0.exact_dedup.normalisation=none`` change one entry of a list."""
    changed = [dict(entry) if isinstance(entry, Mapping) else entry for entry in existing]
    for position, value in values.items():
        index = int(position)
        if index >= len(changed):
            raise SettingsError(
                f"{origin}: '{'.'.join(path)}' has {len(changed)} entries, there is no {index} (they count from 0)"
            )
        if isinstance(value, Mapping) and isinstance(changed[index], dict):
            _merge(changed[index], value, origin, origins, (*path, str(index)))
        else:
            changed[index] = value
            origins[".".join((*path, str(index)))] = origin
    return changed


def _problems(model: type[BaseModel], error: ValidationError, origins: Mapping[str, str]) -> list[str]:
    rows = []
    for problem in error.errors(include_url=False):
        location = [part for part in problem["loc"] if not str(part).startswith("function-")]
        dotted, given = _place(model, location, origins)
        where = f" ({given})" if given != "default" else ""
        value, kind, context = problem.get("input"), problem["type"], problem.get("ctx", {})
        if kind == "extra_forbidden":
            known = _field_names(model, location[:-1])
            rows.append(f"unknown setting '{dotted}'{where}{_suggestion(str(location[-1]), known)}")
        elif kind == "missing":
            section = _place(model, location[:-1], origins)[1]
            rows.append(f"setting '{dotted}' is missing" + (f" ({section})" if section != "default" else ""))
        elif kind == "union_tag_invalid":
            known = [name.strip(" '") for name in str(context["expected_tags"]).split(",")]
            rows.append(
                f"setting '{dotted}'{where}: unknown kind '{context['tag']}'{_suggestion(context['tag'], known)}"
            )
        elif kind == "union_tag_not_found":
            rows.append(f"setting '{dotted}'{where}: nothing says of which kind it is; give its `kind`")
        else:
            shown = "" if isinstance(value, (dict, BaseModel)) else f", got {_short(value)}"
            if kind == "string_type" and isinstance(value, (bool, int, float)):
                shown += "; in quotes it is text: '...' (on the command line: '\"...\"')"
            message = problem["msg"].removeprefix("Value error, ")
            rows.append(f"setting '{dotted}'{where}: {message}{shown}" if dotted else f"{message}{where}")
    return rows


def _place(model: type[BaseModel], location: Sequence[int | str], origins: Mapping[str, str]) -> tuple[str, str]:
    """A problem's dotted path as people write it, and its origin.

    Within a union the location also has the member's ``kind``. It belongs to the path where an entry of a list is
    written as ``- exact_dedup: {...}``, and to none in a mapping (``annotate.tokens``).
    """
    tags = {
        index
        for index, part in enumerate(location)
        if any(_is_tagged(step) for step in _steps(model, location[:index])) and _steps(model, location[: index + 1])
    }
    bare = ".".join(str(part) for index, part in enumerate(location) if index not in tags)
    shown = ".".join(
        str(part) for index, part in enumerate(location) if index not in tags or isinstance(location[index - 1], int)
    )
    if bare in origins:
        return bare, origins[bare]
    given = Resolved(model.model_construct(), origins).origin_of(shown)
    if given == "default":  # a section: where what it holds came from
        inside = {origin for path, origin in origins.items() if path.startswith(shown + ".")}
        given = ", ".join(sorted(inside)) or given
    return shown, given


def _suggestion(name: str, known: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if nearest:
        return f"; did you mean '{nearest[0]}'?"
    return f"; known here: {', '.join(sorted(known))}" if known else ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _field_names(model: Any, location: Sequence[int | str]) -> list[str]:
    """The names that are known at a place in the settings."""
    return sorted({name for step in _steps(model, location) for name in _names_of(step)})


def _steps(model: Any, location: Sequence[int | str]) -> list[Any]:
    """The types at a place in the settings, by walking the models' annotations."""
    candidates = [model]
    for part in location:
        candidates = [step for candidate in candidates for step in _descend(candidate, part)]
    return candidates


def _is_tagged(annotation: Any) -> bool:
    """Whether an annotation is a union whose members are told apart by their ``kind``."""
    return typing.get_origin(annotation) in (typing.Union, types.UnionType) and any(
        _tag_of(member) is not None for member in typing.get_args(annotation)
    )


def _names_of(annotation: Any) -> list[str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [info.alias or name for name, info in annotation.model_fields.items()]
    return []


def _descend(annotation: Any, part: int | str) -> list[Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _descend(arguments[0], part)
    if origin in (typing.Union, types.UnionType):
        tagged = [a for a in arguments if _tag_of(a) == part]
        return tagged or [step for a in arguments for step in _descend(a, part)]
    if origin in (list, tuple) and isinstance(part, int):
        return _expand(arguments[0])
    if origin is dict:
        return _expand(arguments[1])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            if part in (name, info.alias):
                return _expand(info.annotation)
    return []


def _expand(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [
            typing.get_args(a)[0] if typing.get_origin(a) is typing.Annotated else a
            for a in typing.get_args(annotation)
        ]
        if any(_tag_of(m) is not None for m in members):
            return [annotation]
        return members
    return [annotation]


def _tag_of(annotation: Any) -> str | None:
    """The value of the discriminating field (``kind``) of a member of a tagged union."""
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return None
    kind = annotation.model_fields.get("kind")
    return str(kind.default) if kind is not None else None
