"""Overrides go by dotted path, by the rules of YAML, and are held against the model like the file."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from stcsim.config.document import Document, Place
from stcsim.config.loader import parse
from stcsim.config.override import apply_overrides
from stcsim.config.validation import validate
from stcsim.errors import ConfigError
from stcsim.units import Hertz


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Check(Section):
    share: float = 1.0
    seed: int = 0


class Timing(Section):
    interval: int
    latency: int


class Layer(Section):
    m: int = 1


class Machine(Section):
    clock: Hertz
    scheduler: str = "gto"
    check: Check = Check()
    detail: Check | None = None
    instructions: dict[str, Timing] = Field(default_factory=dict)
    layers: tuple[Layer, ...] = ()


TEXT = """\
clock: 1.53 GHz
instructions:
  OHMMA.8161: {interval: 1, latency: 4}
  mma: {interval: 8, latency: 25}
  8: {interval: 2, latency: 2}
layers: [{m: 32}, {m: 64}]
detail:
"""


def document() -> Document:
    return parse(TEXT, "m.yaml")


def built(*overrides: str) -> Machine:
    return validate(Machine, apply_overrides(document(), overrides, Machine))


def message(*overrides: str, model: type | None = Machine) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(Machine, apply_overrides(document(), overrides, model))
    return str(caught.value)


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("clock=1.2GHz", ("clock",), "1.2GHz"),
        ("clock = 1.2 GHz", ("clock",), "1.2 GHz"),
        ("layers.1.m=8", ("layers", 1, "m"), 8),
        ("layers=[{m: 1}]", ("layers",), [{"m": 1}]),
        ("layers.0={m: 1}", ("layers", 0), {"m": 1}),
        ("instructions.mma.latency=7", ("instructions", "mma", "latency"), 7),
        ("instructions.OHMMA.8161.latency=7", ("instructions", "OHMMA.8161", "latency"), 7),
        ('instructions."OHMMA.8161".latency=7', ("instructions", "OHMMA.8161", "latency"), 7),
        ("instructions.8.latency=7", ("instructions", 8, "latency"), 7),
        ('instructions."new.one"={interval: 1}', ("instructions", "new.one"), {"interval": 1}),
        ('instructions."a=b"=1', ("instructions", "a=b"), 1),
        ("scheduler=lrr", ("scheduler",), "lrr"),
        ("scheduler=2:4", ("scheduler",), "2:4"),
        ("scheduler=on", ("scheduler",), "on"),
        ("scheduler=010", ("scheduler",), "010"),
        ("scheduler='12'", ("scheduler",), "12"),
        ("scheduler=a=b", ("scheduler",), "a=b"),
        ("scheduler=", ("scheduler",), None),
        ("check.share=1e-1", ("check", "share"), 0.1),
        ("check.share=true", ("check", "share"), True),
        ("detail.share=0.5", ("detail", "share"), 0.5),
    ],
)
def test_a_value_is_put_at_its_path(override: str, path: tuple[str | int, ...], value: Any) -> None:
    changed = apply_overrides(document(), [override], Machine)
    assert changed.get(path) == value
    assert type(changed.get(path)) is type(value)
    assert changed.place_of(path) == Place(f"--set {override}")


def test_a_section_that_the_file_leaves_out_keeps_its_other_defaults() -> None:
    assert built("check.share=0.5").check == Check(share=0.5, seed=0)
    assert built("detail.share=0.5").detail == Check(share=0.5, seed=0)


def test_nothing_else_changes() -> None:
    before = document()
    after = apply_overrides(before, ["layers.1.m=8"], Machine)
    assert before.data == document().data
    assert after.data == {**before.data, "layers": [{"m": 32}, {"m": 8}]}
    assert after.place_of(("layers", 0, "m")) == Place("m.yaml", 6)


def test_of_several_overrides_the_later_wins() -> None:
    assert built("check.share=0.5", "check={share: 0.2}", "check.seed=3").check == Check(share=0.2, seed=3)


KEYS = "check, clock, detail, instructions, layers, scheduler"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("clok=1 GHz", f"clok: must be a known key ({KEYS}), not clok (did you mean clock?)"),
        ("chek.share=1", f"chek: must be a known key ({KEYS}), not chek (did you mean check?)"),
        ("check.shar=1", "check.shar: must be a known key (seed, share), not shar (did you mean share?)"),
        ("detail.shar=1", "detail.shar: must be a known key (seed, share), not shar (did you mean share?)"),
        ("layers.0.n=1", "layers.0.n: must be a known key (m), not n"),
        (
            "instructions.mm.latency=1",
            "instructions.mm: must be a known section (8, OHMMA.8161, mma), not mm (did you mean mma?)",
        ),
        (
            "instructions.OHMMA.8161.latenc=1",
            'instructions."OHMMA.8161".latenc: must be a known key (interval, latency), '
            "not latenc (did you mean latency?)",
        ),
        ("instructions.new={interval: 1}", "instructions.new.latency: must be given"),
        ("clock.x=1", "clock: must be a mapping or a list to have x set in it, not 1.53 GHz"),
        ("layers.2.m=1", "layers: must be an index from 0 to 1, not 2"),
        ("layers.-1.m=1", "layers: must be an index from 0 to 1, not -1"),
        ("layers.m=1", "layers: must be an index from 0 to 1, not m"),
        (
            "clock=1.2",
            "clock: must be a frequency with its unit (Hz, kHz, MHz, GHz), such as 1.41 GHz, not 1.2",
        ),
        ("check.seed=2.5", "check.seed: must be a whole number, not 2.5"),
        ("check={seed: x}", "check.seed: must be a whole number, not x"),
        ("clock", "must be PATH=VALUE with a dotted path, such as machine.clock=1.2GHz"),
        ("=3", "must be PATH=VALUE with a dotted path, such as machine.clock=1.2GHz"),
        ("a..b=3", "must be PATH=VALUE with a dotted path, such as machine.clock=1.2GHz"),
        ('"a=3', "must be PATH=VALUE with a dotted path, such as machine.clock=1.2GHz"),
        ("clock=[1", "must be valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("clock=!!str 1", "must not have a YAML tag, not !!str"),
        ("check={seed: 1, seed: 2}", "seed: must be given once, not again (first in line 1)"),
    ],
)
def test_what_does_not_hold_is_told_with_the_option(override: str, expected: str) -> None:
    assert message(override) == f"--set {override}: {expected}"


def test_an_index_into_an_empty_list_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides(parse("layers: []", "m.yaml"), ["layers.0=1"])
    assert str(caught.value) == "--set layers.0=1: layers: must not be set in an empty list, not 0"


def test_without_a_model_the_last_key_may_be_new_and_validation_tells_a_typo() -> None:
    assert message("clok=1 GHz", model=None) == (
        f"--set clok=1 GHz: clok: must be a known key ({KEYS}), not clok (did you mean clock?)"
    )


def test_without_a_model_a_section_must_be_there() -> None:
    assert message("chck.share=1", model=None) == (
        "--set chck.share=1: chck: must be a known section (clock, detail, instructions, layers), not chck "
        "(did you mean clock?)"
    )


def test_every_override_that_leads_nowhere_is_told_at_once() -> None:
    assert message("clock.x=1", "layers.2.m=1").split("\n") == [
        "--set clock.x=1: clock: must be a mapping or a list to have x set in it, not 1.53 GHz",
        "--set layers.2.m=1: layers: must be an index from 0 to 1, not 2",
    ]


def test_problems_of_the_file_and_of_an_override_are_told_together() -> None:
    broken = parse(TEXT.replace("{m: 32}", "{m: x}"), "m.yaml")
    with pytest.raises(ConfigError) as caught:
        validate(Machine, apply_overrides(broken, ["check.seed=x"], Machine))
    assert set(str(caught.value).split("\n")) == {
        "m.yaml:6: layers.0.m: must be a whole number, not x",
        "--set check.seed=x: check.seed: must be a whole number, not x",
    }
