"""Validation tells every problem at once, in our words, with file, line and path."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal, Self, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core.core_schema import ErrorType

from stcsim.config.loader import load, parse
from stcsim.config.machine import Machine
from stcsim.config.sentence import sentence
from stcsim.config.study import Study
from stcsim.config.validation import FieldError, validate
from stcsim.errors import ConfigError, Problem
from stcsim.resources import data_path
from stcsim.units import Bytes, Cycles, Hertz


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tile(Section):
    m: int = 1
    n: int = 1


class Banked(Section):
    model: Literal["banked"]
    banks: int = 32


class Words(Section):
    model: Literal["words"]
    words: int = 112

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.words % 2:
            raise FieldError(Problem(f"must be even, not {self.words}", path="words"))
        return self


class Tree(Section):
    value: int
    below: tuple[Tree, ...] = ()


class Policy(enum.Enum):
    GTO = "gto"
    LRR = "lrr"


class Everything(Section):
    clock: Hertz = 1e9
    capacity: Bytes = 0
    latency: Cycles = 0
    clock_or_auto: Hertz | Literal["auto"] = "auto"
    count: int = 0
    positive: Annotated[int, Field(ge=1)] = 1
    positive_or_auto: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    number: float = 0.0
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    below_one: Annotated[float, Field(ge=0, lt=1)] = 0.0
    eighths: Annotated[int, Field(multiple_of=8)] = 8
    text: str = ""
    label: Annotated[str, Field(min_length=1, max_length=8, pattern="^[a-z]+$")] = "a"
    flag: bool = False
    choice: Literal["uniform", "dense", "block"] = "dense"
    only: Literal["one"] = "one"
    policy: Policy = Policy.GTO
    maybe: int | None = None
    tile: Tile = Tile()
    tiles: tuple[Tile, ...] = ()
    named: dict[str, Tile] = Field(default_factory=dict)
    by_dtype: dict[Literal["fp16", "int8"], Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    by_count: dict[int, str] = Field(default_factory=dict)
    few: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,)
    pair: tuple[int, str] = (1, "")
    accumulator: Annotated[Banked | Words, Field(discriminator="model")] | None = None
    plain_union: Tile | Tree | int | None = None
    tree: Tree | None = None
    even: int = 0
    anything: Any = None

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            message = f"must be even, not {value}"
            raise ValueError(message)
        return value


def messages(text: str, model: type = Everything) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validate(model, parse(text, "f.yaml"))
    return str(caught.value).split("\n")


HERTZ = "must be a frequency with its unit (Hz, kHz, MHz, GHz), such as 1.41 GHz"

ONE_PROBLEM = [
    # wrong types
    ("count: x", "count: must be a whole number, not x"),
    ("count: true", "count: must be a whole number, not true"),
    ("count: 1.5", "count: must be a whole number, not 1.5"),
    ("count: 010", "count: must be a whole number, not 010"),
    ("count: 2:4", "count: must be a whole number, not 2:4"),
    ("count: '12'", "count: must be a whole number, not '12'"),
    ("count:", "count: must be a whole number, not null"),
    ("count: [1]", "count: must be a whole number, not [1]"),
    ("count: {a: yes}", "count: must be a whole number, not {a: yes}"),
    ("count: 1e30", "count: must be a whole number, not 1e+30"),
    ("count: 9223372036854775808", "count: must be less than 2**63 in magnitude, not 9223372036854775808"),
    ("maybe: x", "maybe: must be a whole number, not x"),
    ("number: x", "number: must be a number, not x"),
    ("number: false", "number: must be a number, not false"),
    ("number: .inf", "number: must be a number, not .inf"),
    ("number: nan", "number: must be a number, not nan"),
    ("text: 12", "text: must be a text, not 12 (did you mean '12'?)"),
    ("text: true", "text: must be a text, not true (did you mean 'true'?)"),
    ("text:", "text: must be a text, not null"),
    ("flag: yes", "flag: must be true or false, not yes (did you mean true?)"),
    ("flag: Off", "flag: must be true or false, not Off (did you mean false?)"),
    ("flag: True", "flag: must be true or false, not True (did you mean true?)"),
    ("flag: 1", "flag: must be true or false, not 1"),
    ("tile: 3", "tile: must be a mapping (key: value), not 3"),
    ("tiles: {}", "tiles: must be a list, not {}"),
    ("named: [1]", "named: must be a mapping (key: value), not [1]"),
    ("pair: [1, 2]", "pair.1: must be a text, not 2 (did you mean '2'?)"),
    ("pair: [1]", "pair.1: must be given"),
    # quantities
    ("clock: 3", f"clock: {HERTZ}, not 3"),
    ("clock: 1 ghz", f"clock: {HERTZ}, not 1 ghz (did you mean 1 GHz?)"),
    ("clock: 0 Hz", "clock: must be greater than 0 Hz, not 0 Hz"),
    (
        "capacity: 1 GHz",
        "capacity: must be an amount of bytes with its unit (B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB), "
        "such as 40 MiB, not 1 GHz",
    ),
    ("latency: 2.5", "latency: must come to a whole number of clk, not 2.5"),
    # choices
    ("choice: spare", "choice: must be one of block, dense, uniform, not spare"),
    ("choice: unifrom", "choice: must be one of block, dense, uniform, not unifrom (did you mean uniform?)"),
    ("only: two", "only: must be one, not two"),
    ("policy: ltr", "policy: must be one of gto, lrr, not ltr (did you mean lrr?)"),
    # bounds
    ("positive: 0", "positive: must be at least 1, not 0"),
    ("share: 0.0", "share: must be greater than 0, not 0"),
    ("share: 1.5", "share: must be at most 1, not 1.5"),
    ("below_one: 1", "below_one: must be less than 1, not 1"),
    ("eighths: 20", "eighths: must be a multiple of 8, not 20"),
    ("few: []", "few: must have at least 1 item, not 0"),
    ("few: [1, 2, 3]", "few: must have at most 2 items, not 3"),
    ("label: ''", "label: must have at least 1 character, not ''"),
    ("label: abcdefghi", "label: must have at most 8 characters, not abcdefghi"),
    ("label: A", "label: must match the pattern ^[a-z]+$, not A"),
    # keys
    ("tile: {o: 1}", "tile.o: must be a known key (m, n), not o"),
    ("tiles: [{}, {mm: 1}]", "tiles.1.mm: must be a known key (m, n), not mm (did you mean m?)"),
    ("named: {a.b: {mm: 1}}", 'named."a.b".mm: must be a known key (m, n), not mm (did you mean m?)'),
    ("by_dtype: {fp17: 1}", "by_dtype.fp17: must be a known key (fp16, int8), not fp17 (did you mean fp16?)"),
    ("by_dtype: {fp16: 0}", "by_dtype.fp16: must be at least 1, not 0"),
    ("by_count: {8: 1}", "by_count.8: must be a text, not 1 (did you mean '1'?)"),
    ("tree: {}", "tree.value: must be given"),
    (
        "tree: {value: 1, below: [{value: 1, below: [{value: x}]}]}",
        "tree.below.0.below.0.value: must be a whole number, not x",
    ),
    # unions
    ("clock_or_auto: 3", f"clock_or_auto: must be auto or {HERTZ[8:]}, not 3"),
    ("clock_or_auto: auot", f"clock_or_auto: must be auto or {HERTZ[8:]}, not auot (did you mean auto?)"),
    ("positive_or_auto: 0", "positive_or_auto: must be at least 1, not 0"),
    ("positive_or_auto: x", "positive_or_auto: must be auto or a whole number, not x"),
    (
        "accumulator: {model: bank}",
        "accumulator.model: must be one of banked, words, not bank (did you mean banked?)",
    ),
    ("accumulator: {banks: 3}", "accumulator.model: must be given (one of banked, words)"),
    ("accumulator: 3", "accumulator: must be a mapping (key: value), not 3"),
    (
        "accumulator: {model: banked, bank: 1}",
        "accumulator.bank: must be a known key (banks, model), not bank (did you mean banks?)",
    ),
    (
        "accumulator: {model: words, banks: 1}",
        "accumulator.banks: must be a known key (model, words), not banks",
    ),
    ("plain_union: x", "plain_union: must be a whole number or a mapping (key: value), not x"),
    ("plain_union: {m: 1, n: x}", "plain_union.n: must be a whole number, not x"),
    ("plain_union: {value: x}", "plain_union.value: must be a whole number, not x"),
    # our own words pass through
    ("even: 3", "even: must be even, not 3"),
    ("accumulator: {model: words, words: 3}", "accumulator.words: must be even, not 3"),
]


@pytest.mark.parametrize(("text", "message"), ONE_PROBLEM, ids=[text for text, _ in ONE_PROBLEM])
def test_one_problem_is_told_in_one_line(text: str, message: str) -> None:
    assert messages(f"# comment\n{text}") == [f"f.yaml:2: {message}"]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("count: 1e9", "count", 10**9),
        ("count: 2.0", "count", 2),
        ("number: 3", "number", 3.0),
        ("by_count: {8: x}", "by_count", {8: "x"}),
        ("clock: 1.2 GHz", "clock", 1.2e9),
        ("clock_or_auto: 1.2 GHz", "clock_or_auto", 1.2e9),
        ("policy: lrr", "policy", Policy.LRR),
        ("few: [1, 2]", "few", (1, 2)),
        ("maybe: null", "maybe", None),
        ("plain_union: {value: 3}", "plain_union", Tree(value=3)),
        ("accumulator: {model: words, words: 4}", "accumulator", Words(model="words", words=4)),
        ("text: 2:4", "text", "2:4"),
    ],
)
def test_what_holds_becomes_the_field(text: str, field: str, value: object) -> None:
    found = getattr(validate(Everything, parse(text, "f.yaml")), field)
    assert found == value
    assert type(found) is type(value)


def test_all_problems_are_told_at_once_in_the_order_of_lines() -> None:
    text = (
        "flag: 3\ncloc: 1 GHz\ntiles:\n"
        "  - {m: x}\n  - n: 1\n    q: 2\npositive: 0\nlatency: 99999999999999999999\n"
    )
    keys = ", ".join(sorted(Everything.model_fields))
    assert messages(text) == [
        "f.yaml:1: flag: must be true or false, not 3",
        f"f.yaml:2: cloc: must be a known key ({keys}), not cloc (did you mean clock?)",
        "f.yaml:4: tiles.0.m: must be a whole number, not x",
        "f.yaml:6: tiles.1.q: must be a known key (m, n), not q",
        "f.yaml:7: positive: must be at least 1, not 0",
        "f.yaml:8: latency: must be less than 2**63 in magnitude, not 99999999999999999999",
    ]


class Required(Section):
    clock: int
    sms: int


def test_a_missing_key_has_the_line_of_its_section() -> None:
    class Outer(Section):
        a: int = 0
        machine: Required

    assert messages("a: 1\nmachine:\n  sms: 1", Outer) == ["f.yaml:2: machine.clock: must be given"]


def test_a_typo_is_not_told_a_second_time_as_a_missing_key() -> None:
    assert messages("clok: 1\nsms: 2", Required) == [
        "f.yaml:1: clok: must be a known key (clock, sms), not clok (did you mean clock?)"
    ]


def test_a_missing_key_beside_an_unlike_one_is_told() -> None:
    assert messages("frequency: 1\nsms: 2", Required) == [
        "f.yaml:1: clock: must be given",
        "f.yaml:1: frequency: must be a known key (clock, sms), not frequency",
    ]


def test_a_section_that_takes_no_key_says_so() -> None:
    assert messages("a: 1", Section) == ["f.yaml:1: a: must not be given: no key is known here"]


def test_a_part_of_a_document_is_told_with_its_whole_path() -> None:
    part = parse("layers:\n  - {m: 1}\n  - {m: x}", "f.yaml").subtree("layers", 1)
    with pytest.raises(ConfigError) as caught:
        validate(Tile, part)
    assert str(caught.value) == "f.yaml:3: layers.1.m: must be a whole number, not x"


def test_bare_data_is_validated_without_a_place() -> None:
    assert validate(Tile, {"m": 3}) == Tile(m=3)
    with pytest.raises(ConfigError) as caught:
        validate(Tile, {"m": float("nan"), "n": float("-inf")})
    assert str(caught.value) == "m: must be a finite number, not nan\nn: must be a finite number, not -inf"


def test_a_validator_may_speak_of_several_values_below_it() -> None:
    class Outer(Section):
        tiles: tuple[Tile, ...]

        @model_validator(mode="after")
        def _check(self) -> Self:
            raise FieldError([Problem("must be x", path="tiles.1.m"), Problem("must be y", path="tiles.0")])

    assert messages("tiles:\n  - {m: 1}\n  - n: 1\n    m: 2", Outer) == [
        "f.yaml:2: tiles.0: must be y",
        "f.yaml:4: tiles.1.m: must be x",
    ]


def test_a_long_value_is_shortened_and_control_characters_are_escaped() -> None:
    assert messages("count: " + "x" * 100) == [f"f.yaml:1: count: must be a whole number, not {'x' * 57}..."]
    assert messages('count: "\\e[31m"') == ["f.yaml:1: count: must be a whole number, not '\\x1b[31m'"]


CONTEXT: dict[str, Any] = {
    **dict.fromkeys(("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length"), 1),
    "error": ValueError("must be ours"),
}


@pytest.mark.parametrize("kind", get_args(ErrorType))
def test_every_kind_of_error_has_a_sentence_of_ours(kind: str) -> None:
    text = str(sentence(kind, CONTEXT, "x", ["a"]))
    assert text.startswith("must ")
    assert "Input should" not in text


RAW = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["auto", "1 GHz"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["m", "n", "value", "model", "banks", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*Everything.model_fields, "unknown"]), RAW, max_size=4))
def test_whatever_is_given_is_taken_or_told_in_our_words(data: dict[str, Any]) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        validate(Everything, data)
    except ConfigError as error:
        problems = error.problems
    assert all(problem.message.startswith("must ") for problem in problems)
    assert not any("Input should" in problem.message for problem in problems)
    assert all(problem.path is not None and problem.path.split(".")[0] in data for problem in problems)


@pytest.mark.parametrize("model", [Machine, Study])
def test_an_empty_mapping_lacks_every_required_key_of_a_shipped_model(model: type[BaseModel]) -> None:
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    assert messages("{}", model) == [f"f.yaml:1: {name}: must be given" for name in required]


def test_a_typo_in_a_shipped_machine_is_told_with_its_line() -> None:
    file = data_path("configs", "machines", "h200-mma-sync.yaml")
    text = file.read_text(encoding="utf-8").replace("\nsms:", "\nsmss:")
    line = next(i for i, row in enumerate(text.splitlines(), 1) if row.startswith("smss:"))
    keys = ", ".join(sorted(Machine.model_fields))
    assert messages(text, Machine) == [
        f"f.yaml:{line}: smss: must be a known key ({keys}), not smss (did you mean sms?)"
    ]
    assert validate(Machine, load(file)).sms == 132
