"""What a configuration model looks like from outside: JSON Schema for editors, tables for the documentation.

Beside the models, of which it reads only what pydantic exports; knows nothing
of files or simulation.  Both are made from the model, so that neither can
disagree with what validation holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

JsonSchema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with every default written as in YAML: made by its factory, with its unit."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        factory = schema.get("default_factory")
        if factory is not None and not schema.get("default_factory_takes_data"):
            described["default"] = self.encode_default(cast("Callable[[], Any]", factory)())
        inner: dict[str, Any] = dict(schema["schema"])
        while inner["type"] == "nullable":
            inner = inner["schema"]
        write = inner.get("serialization", {}).get("function")
        if write is not None and described.get("default") is not None:
            described["default"] = write(described["default"])
        return described


def json_schema(model: Any) -> JsonSchema:
    """Return the JSON Schema of a model's YAML.

    Parameters
    ----------
    model : type
        A pydantic model, or any type that pydantic validates.

    Returns
    -------
    schema : dict
        Of draft 2020-12; titles and descriptions come from the model's fields.
    """
    schema = TypeAdapter(model).json_schema(schema_generator=_Generator, mode="validation")
    return {"$schema": _DIALECT, **schema}


def yaml_reference(model: Any) -> str:
    """Return a Markdown table of every key of a model.

    Parameters
    ----------
    model : type
        A pydantic model.

    Returns
    -------
    table : str
        One row per key: its path, type, default and description.  ``<key>`` stands for a key that
        the user chooses, ``[]`` for each item of a list.
    """
    schema = json_schema(model)
    rows = [("Key", "Type", "Default", "Meaning"), ("---", "---", "---", "---")]
    rows += _Reference(schema.get("$defs", {})).rows(schema, "", ())
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


Row = tuple[str, str, str, str]


class _Reference:
    """Walks a JSON Schema and makes a row of each key."""

    def __init__(self, definitions: dict[str, JsonSchema]) -> None:
        self._definitions = definitions

    def rows(self, schema: JsonSchema, path: str, open_names: tuple[str, ...]) -> list[Row]:
        """Return the rows of the keys of a mapping at `path`, those of sections below it included."""
        rows: list[Row] = []
        for key, field in schema.get("properties", {}).items():
            where = f"{path}.{key}" if path else key
            default = "required" if key in schema.get("required", ()) else _code(field.get("default"))
            rows.append((f"`{where}`", self._type(field), default, self._meaning(field)))
            for suffix, name, section in self._sections(field):
                if name not in open_names:
                    rows += self.rows(section, where + suffix, (*open_names, name))
        return rows

    def _meaning(self, field: JsonSchema) -> str:
        """Return what a field's own description says, or else that of the section that stands there."""
        sections = [section for _, _, section in self._sections(field)]
        described = [text for schema in (field, *sections) if (text := schema.get("description"))]
        return " ".join(str(described[0]).split()).replace("|", r"\|") if described else ""

    def _resolved(self, field: JsonSchema) -> JsonSchema:
        reference = _reference(field)
        return self._definitions[reference.rpartition("/")[2]] if reference else field

    def _sections(self, field: JsonSchema) -> Iterator[tuple[str, str, JsonSchema]]:
        """Yield the mappings that stand below a field: where, their name and their schema."""
        for member in (*field.get("anyOf", ()), *field.get("oneOf", ())):
            yield from self._sections(member)
        resolved = self._resolved(field)
        if "properties" in resolved:
            yield "", _reference(field) or str(id(resolved)), resolved
        elif isinstance(resolved.get("items"), dict):
            for suffix, name, section in self._sections(resolved["items"]):
                yield "[]" + suffix, name, section
        elif isinstance(resolved.get("additionalProperties"), dict):
            for suffix, name, section in self._sections(resolved["additionalProperties"]):
                yield ".<key>" + suffix, name, section

    def _type(self, field: JsonSchema) -> str:
        """Return what a value of this field is, in words."""
        members = [*field.get("anyOf", ()), *field.get("oneOf", ())]
        if members:
            return " or ".join(dict.fromkeys(self._type(member) for member in members))
        field = self._resolved(field)
        if "enum" in field:
            return ", ".join(_code(value) for value in field["enum"])
        if "const" in field:
            return _code(field["const"])
        kind = field.get("type")
        if kind == "array":
            items = field.get("items")
            return f"list of {self._type(items)}" if isinstance(items, dict) else "list"
        if kind == "object":
            values = field.get("additionalProperties")
            return f"mapping to {self._type(values)}" if isinstance(values, dict) else "mapping"
        if kind == "string" and "examples" in field:
            return f"quantity such as {_code(field['examples'][0])}"
        names = {
            "integer": "whole number",
            "number": "number",
            "boolean": "`true` or `false`",
            "string": "text",
        }
        return names.get(str(kind), "null" if kind == "null" else "anything") + _bounds(field)


def _reference(field: JsonSchema) -> str | None:
    """Return the reference of a field to a definition; older pydantic wraps it in a list of one."""
    holder = {**field, **(field["allOf"][0] if "allOf" in field else {})}
    return holder.get("$ref")


def _bounds(field: JsonSchema) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "greater than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
        "multipleOf": "a multiple of",
    }
    limits = [f"{words[name]} {field[name]:g}" for name in words if name in field]
    return f" ({', '.join(limits)})" if limits else ""


def _code(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value)
    return f"`{text}`"
