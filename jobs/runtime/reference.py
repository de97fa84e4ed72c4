"""Every setting, from the models themselves: conf/base.yaml, README's table, and the resolved settings of a run."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from jobs.runtime.display import print_table
from jobs.runtime.layers import Resolved

if TYPE_CHECKING:
    from jobs.settings import Settings

HEAD = """# Every setting of Corpus Weir with its default. Nothing is set here: take the lines that you need into a file of
# your own, or set them for a whole site by uncommenting them. Layers: defaults < this file < your YAML files <
# environment WEIR_A__B=value < --set a.b=value. Written by: weir settings --reference yaml
"""


@dataclass(frozen=True)
class Entry:
    """One setting: dotted path (NAME stands for a name of the user's), type, default, meaning."""

    path: str
    kind: str
    default: str
    meaning: str


def entries() -> list[Entry]:
    """All settings in the order of the models."""
    from jobs.settings import Settings

    return list(_walk(Settings, ""))


def reference_markdown() -> str:
    """The table of settings for the README."""
    lines = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for entry in entries():
        cells = (f"`{entry.path}`", entry.kind, f"`{entry.default}`" if entry.default else "", entry.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def reference_yaml() -> str:
    """conf/base.yaml: every setting, commented out, with its default and meaning."""
    lines = [HEAD]
    for entry in entries():
        default = entry.default or "(no default)"
        lines.append(f"# {entry.path}: {default}\n#     {entry.meaning} [{entry.kind}]")
    return "\n".join(lines) + "\n"


def print_settings(resolved: Resolved[Any]) -> None:
    """The resolved values with where each came from, a line each."""
    rows = [
        [path, _plain(value), resolved.origin_of(path)]
        for path, value in _leaves(resolved.settings.model_dump(mode="json", by_alias=True), "")
    ]
    print_table("", ["setting", "value", "from"], rows, stream=sys.stdout)


def signature_curves(settings: Settings) -> dict[str, str]:
    """What follows from the settings of each minhash annotator and near_dedup step: the bands, and the S-curve."""
    from jobs.near_dedup import NearDedupSettings, minhash_of
    from udfs.annotators.minhash import MinhashSettings
    from udfs.lsh import s_curve

    shapes = {f"annotate.{n}": s.shape for n, s in settings.annotate.items() if isinstance(s, MinhashSettings)}
    for step in settings.decide:
        if isinstance(step, NearDedupSettings) and step.minhash not in settings.annotate:
            shapes[f"decide.{step.name}"] = minhash_of(settings, step).shape
    return {
        name: f"{bands} bands x {rows} rows; P(candidate) at similarity "
        + ", ".join(f"{at}: {value:.3f}" for at, value in s_curve(bands, rows).items())
        for name, (bands, rows) in shapes.items()
    }


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{number}")
    else:
        yield path, value


def _walk(model: type[BaseModel], path: str) -> Iterator[Entry]:
    for name, info in model.model_fields.items():
        here = f"{path}.{info.alias or name}" if path else (info.alias or name)
        nested = list(_models(info.annotation))
        yield Entry(here, _kind(info.annotation), _default(info), info.description or "")
        for suffix, inner in nested:
            tag = inner.model_fields.get("kind")
            place = here + suffix + (f"({tag.default})" if tag is not None and suffix else "")
            yield from _walk(inner, place)


def _models(annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models inside an annotation, with how they are reached: ``.NAME`` in a mapping, ``[]`` in a list."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "", annotation
    elif origin is typing.Annotated:
        yield from _models(arguments[0])
    elif origin is dict:
        yield from ((".NAME" + suffix, inner) for suffix, inner in _models(arguments[1]))
    elif origin is list:
        yield from (("[]" + suffix, inner) for suffix, inner in _models(arguments[0]))
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _models(argument)


def _kind(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(arguments[0])
    if origin is typing.Literal:
        return " or ".join(str(a) for a in arguments)
    if origin is dict:
        return f"mapping of {_kind(arguments[1])}"
    if origin is list:
        return f"list of {_kind(arguments[0])}"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(a) for a in arguments if a is not type(None)))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined or value is None:
        return ""
    if isinstance(value, BaseModel):
        return ""
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        return "[" + ", ".join(str(getattr(v, "kind", "")) for v in value) + "]"
    if isinstance(value, dict) and value and isinstance(next(iter(value.values())), BaseModel):
        return "{" + ", ".join(value) + "}"
    return _plain(value)


def _plain(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).strip().removesuffix("...").strip()
