"""The shape of a configuration model: which keys and choices it has at a path.

Beside the models: validation asks it what the place of an error looks like,
overrides ask it whether a path that the file lacks is one of the model's.
Knows pydantic's core schema and nothing of files or messages.

A schema here is a node of that core schema without its wrappers (validators,
defaults, null), so that its ``type`` says what data it takes.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

Schema = dict[str, Any]

_INNER = {
    "model": "schema",
    "dataclass": "schema",
    "default": "schema",
    "nullable": "schema",
    "function-before": "schema",
    "function-after": "schema",
    "function-wrap": "schema",
    "lax-or-strict": "strict_schema",
    "json-or-python": "json_schema",
}


class Shape:
    """What data a model takes, place by place.

    Parameters
    ----------
    model : type
        A pydantic model, or any type that pydantic validates.
    """

    def __init__(self, model: Any) -> None:
        self._definitions: dict[str, Schema] = {}
        self.root = self.bare(dict(TypeAdapter(model).core_schema))

    def bare(self, schema: Schema) -> Schema:
        """Return `schema` without its wrappers."""
        while True:
            kind = schema["type"]
            if kind == "definitions":
                self._definitions |= {definition["ref"]: definition for definition in schema["definitions"]}
                schema = schema["schema"]
            elif kind == "definition-ref":
                schema = self._definitions[schema["schema_ref"]]
            elif kind == "chain":
                schema = schema["steps"][0]
            elif kind in _INNER:
                schema = schema[_INNER[kind]]
            else:
                return schema

    def fields(self, schema: Schema) -> dict[str, Schema]:
        """Return the schema of each key of a model by the name that YAML uses; empty for anything else."""
        if schema["type"] not in ("model-fields", "typed-dict"):
            return {}
        return {
            str(field.get("validation_alias", name)): self.bare(field["schema"])
            for name, field in schema["fields"].items()
        }

    def child(self, schema: Schema, item: str | int) -> Schema | None:
        """Return the schema of the value at `item`, or None if there is none or it may be anything."""
        kind = schema["type"]
        if kind in ("model-fields", "typed-dict"):
            return self.fields(schema).get(str(item))
        inner = None
        if kind == "dict":
            inner = schema.get("values_schema")
        elif kind == "tuple" and isinstance(item, int):
            items = schema["items_schema"]
            last = schema.get("variadic_item_index", len(items) - 1)
            inner = items[min(item, last)] if items else None
        elif kind in ("list", "set", "frozenset") and isinstance(item, int):
            inner = schema.get("items_schema")
        return None if inner is None else self.bare(inner)

    def choices(self, schema: Schema) -> dict[str, Schema]:
        """Return the members of a union, by the name that pydantic gives them; empty for anything else."""
        if schema["type"] == "tagged-union":
            return {str(tag): self.bare(choice) for tag, choice in schema["choices"].items()}
        if schema["type"] != "union":
            return {}
        members: dict[str, Schema] = {}
        for choice in schema["choices"]:
            inner, label = choice if isinstance(choice, tuple) else (choice, None)
            members[label or self._name(inner)] = self.bare(inner)
        return members

    def member(self, schema: Schema, name: str) -> Schema | None:
        """Return the member of a union that pydantic calls `name`, or None where that cannot be told."""
        choices = self.choices(schema)
        if name in choices:
            return choices[name]
        while name.startswith("function-"):
            name = name.partition("(), ")[2].removesuffix("]")
        return choices.get(name.removeprefix("constrained-").partition("[")[0])

    def known_keys(self, schema: Schema) -> set[str] | None:
        """Return the keys that a mapping here may have (in any member of a union); None if any may."""
        choices = self.choices(schema)
        if choices:
            each = [self.known_keys(choice) for choice in choices.values()]
            return None if None in each else {key for keys in each if keys for key in keys}
        if schema["type"] in ("dict", "any"):
            return None
        return set(self.fields(schema))

    def at(self, schema: Schema, item: str | int) -> Schema | None:
        """Return the schema at `item` as `child` does, looking into the members of a union too."""
        for candidate in (schema, *self.choices(schema).values()):
            found = self.child(candidate, item)
            if found is not None:
                return found
        return None

    def literals(self, schema: Schema) -> list[Any]:
        """Return the values that a literal or an enumeration accepts; empty for anything else."""
        if schema["type"] == "literal":
            return [getattr(value, "value", value) for value in schema["expected"]]
        if schema["type"] == "enum":
            return [member.value for member in schema["members"]]
        return []

    def _name(self, schema: Schema) -> str:
        """Return what pydantic calls a member of a union, but for what it says of validators and items."""
        while schema["type"] in _INNER or schema["type"] == "definition-ref":
            if "cls" in schema:
                return str(schema["cls"].__name__)
            schema = self._definitions.get(schema.get("schema_ref", "")) or schema[_INNER[schema["type"]]]
        return str(schema["type"])
