"""The JSON Schema and the reference table are made from a model, and agree with what validation holds."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Machine
from stcsim.config.schema import json_schema, yaml_reference
from stcsim.config.study import Study
from stcsim.units import Bytes, Hertz


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Timing(Section):
    interval: Annotated[int, Field(ge=1)] = Field(description="Cycles between issues.")


class Cache(Section):
    """A cache."""

    capacity: Bytes = Field(default=40 * 2**20, description="Size.")


class Tree(Section):
    below: tuple[Tree, ...] = ()


class Model(Section):
    clock: Hertz = Field(description="Clock of the | SM.")
    boost: Hertz | None = 1.41e9
    cache: Cache = Cache()
    scheduler: Literal["gto", "lrr"] = "gto"
    instructions: dict[str, Timing] = Field(default_factory=dict)
    levels: tuple[Cache, ...] = ()
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    flag: bool = False
    steps: int | Literal["auto"] = "auto"
    tree: Tree | None = None
    options: dict[str, Any] = Field(default_factory=dict)


REFERENCE = r"""
| Key | Type | Default | Meaning |
| --- | --- | --- | --- |
| `clock` | quantity such as `1.41 GHz` | required | Clock of the \| SM. |
| `boost` | quantity such as `1.41 GHz` or null | `1.41 GHz` |  |
| `cache` | mapping | `{"capacity": "40 MiB"}` | A cache. |
| `cache.capacity` | quantity such as `40 MiB` | `40 MiB` | Size. |
| `scheduler` | `gto`, `lrr` | `gto` |  |
| `instructions` | mapping to mapping | `{}` |  |
| `instructions.<key>.interval` | whole number (at least 1) | required | Cycles between issues. |
| `levels` | list of mapping | `[]` | A cache. |
| `levels[].capacity` | quantity such as `40 MiB` | `40 MiB` | Size. |
| `share` | number (greater than 0, at most 1) | `1.0` |  |
| `flag` | `true` or `false` | `false` |  |
| `steps` | whole number or `auto` | `auto` |  |
| `tree` | mapping or null | `null` |  |
| `tree.below` | list of mapping | `[]` |  |
| `options` | mapping | `{}` |  |
"""


def test_the_reference_has_a_row_for_every_key_with_type_default_and_meaning() -> None:
    assert yaml_reference(Model).splitlines() == REFERENCE.strip().splitlines()


def test_the_json_schema_describes_values_as_they_stand_in_yaml() -> None:
    schema = json_schema(Model)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["clock"]
    assert schema["additionalProperties"] is False
    clock = schema["properties"]["clock"]
    assert (clock["type"], clock["description"]) == ("string", "Clock of the | SM.")
    assert re.search(clock["pattern"], clock["examples"][0])
    capacity = schema["$defs"]["Cache"]["properties"]["capacity"]
    assert re.search(capacity["pattern"], capacity["default"])
    assert schema["properties"]["boost"]["default"] == "1.41 GHz"


@pytest.mark.parametrize("model", [Machine, Kernel, Study])
def test_every_key_of_a_shipped_model_is_documented(model: type[BaseModel]) -> None:
    rows = [row.strip("| ").split(" | ") for row in yaml_reference(model).splitlines()[2:]]
    assert rows
    assert [row[0] for row in rows if len(row) != 4 or not row[3].strip()] == []
