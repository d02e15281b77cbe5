"""The YAML loader closes the traps of YAML 1.1 and gives one clear error for all that it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.config.document import Document, Place, format_path, parse_path
from stcsim.config.loader import MAX_DEPTH, MAX_VALUES, load, parse, resolve
from stcsim.errors import ConfigError, Problem
from stcsim.resources import data_path

# What an unquoted scalar means.  YAML 1.1 as PyYAML reads it would give the value in the comment.
SCALARS: list[tuple[str, Any]] = [
    ("2:4", "2:4"),  # 124
    ("1:2", "1:2"),  # 62
    ("16:32", "16:32"),  # 992
    ("190:20:30", "190:20:30"),  # 685230
    ("1:30.5", "1:30.5"),  # 90.5
    ("1e9", 1e9),  # the text
    ("1.0e9", 1e9),  # the text
    ("1.0e+9", 1e9),
    ("1E-3", 1e-3),  # the text
    (".5", 0.5),
    ("1.", 1.0),
    ("-2.5", -2.5),
    ("on", "on"),  # True
    ("off", "off"),  # False
    ("yes", "yes"),  # True
    ("no", "no"),  # False
    ("y", "y"),
    ("True", "True"),  # True
    ("TRUE", "TRUE"),  # True
    ("true", True),
    ("false", False),
    ("010", "010"),  # 8
    ("0o17", "0o17"),
    ("007.5", "007.5"),  # 7.5
    ("0b101", "0b101"),  # 5
    ("0x1F", 31),
    ("1_000", "1_000"),  # 1000
    ("1_000.5", "1_000.5"),  # 1000.5
    ("0", 0),
    ("-0", 0),
    ("+4", 4),
    ("-17", -17),
    ("inf", "inf"),
    (".inf", ".inf"),  # infinity
    ("-.inf", "-.inf"),  # -infinity
    ("nan", "nan"),
    (".nan", ".nan"),  # not a number
    ("null", None),
    ("~", None),
    ("", None),
    ("Null", "Null"),  # None
    ("None", "None"),
    ("2024-01-01", "2024-01-01"),  # a date
    ("=", "="),  # an error
    ("1.41 GHz", "1.41 GHz"),
    ("1.2.3", "1.2.3"),
    ("1e", "1e"),
    ("e5", "e5"),
    ("١", "١"),
]


@pytest.mark.parametrize(("written", "meant"), SCALARS)
def test_a_plain_scalar_means_what_it_looks_like(written: str, meant: Any) -> None:
    value = parse(f"key: {written}", "f.yaml").data["key"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize("written", ["12", "true", "null", "1e9", "", "~"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quoted_scalar_is_text(written: str, quote: str) -> None:
    assert parse(f"key: {quote}{written}{quote}", "f.yaml").data == {"key": written}


def test_a_block_scalar_is_text() -> None:
    assert parse("key: >-\n  12\n", "f.yaml").data == {"key": "12"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_that_python_writes_is_read_back(value: float) -> None:
    assert resolve(repr(value)) == value


@given(st.text(max_size=20))
def test_resolving_never_fails_and_never_gives_nan(text: str) -> None:
    value = resolve(text)
    assert not (isinstance(value, float) and math.isnan(value))


REFUSED = {
    "a duplicate key": ("a: 1\nb: 2\na: 3", "f.yaml:3: a: must be given once, not again (first in line 1)"),
    "a duplicate key in a section": (
        "a:\n  b: {c: 1, c: 2}",
        "f.yaml:2: a.b.c: must be given once, not again (first in line 2)",
    ),
    "a duplicate number as key": (
        "2: x\n0x2: y",
        "f.yaml:2: 2: must be given once, not again (first in line 1)",
    ),
    "a number and its text as keys": (
        "2: x\n'2': y",
        "f.yaml:2: 2: must be given once, not again (first in line 1)",
    ),
    "a boolean key": ("true: 1", "f.yaml:1: must have texts or whole numbers as keys, not true"),
    "a null key": ("a:\n  ~: 1", "f.yaml:2: a: must have texts or whole numbers as keys, not ~"),
    "a fraction as key": ("1.5: 1", "f.yaml:1: must have texts or whole numbers as keys, not 1.5"),
    "a list as key": ("? [1]\n: 2", "f.yaml:1: must have texts or whole numbers as keys, not a list"),
    "a mapping as key": (
        "? {a: 1}\n: 2",
        "f.yaml:1: must have texts or whole numbers as keys, not a mapping",
    ),
    "a merge key": (
        "a: &m {x: 1}\nb:\n  <<: *m",
        "f.yaml:3: b: must be written out: merge keys (<<) are not supported",
    ),
    "a tag": ("a: !!int 3", "f.yaml:1: must not have a YAML tag, not !!int"),
    "a tag of Python's": ("a: !!python/none 3", "f.yaml:1: must not have a YAML tag, not !!python/none"),
    "a private tag": ("a: !foo 3", "f.yaml:1: must not have a YAML tag, not !foo"),
    "an empty tag": ("a: ! 3", "f.yaml:1: must not have a YAML tag, not !"),
    "a float that overflows": ("a: 1e999", "f.yaml:1: a: must be a number that a float can hold, not 1e999"),
    "an endless number": (
        "a: " + "9" * 5000,
        "f.yaml:1: a: must be a number that a float can hold, not 9999999999999999999999999999999999999...",
    ),
    "a tab for indentation": ("a:\n\tb: 1", "f.yaml:2: must have spaces here, not a tab"),
    "a tab after the colon": ("a:\tb", "f.yaml:1: must have spaces here, not a tab"),
    "an unclosed list": (
        "a: [1, 2",
        "f.yaml:1: must be valid YAML: expected ',' or ']', but got '<stream end>'",
    ),
    "an unclosed quote": ("a: 'x", "f.yaml:1: must be valid YAML: found unexpected end of stream"),
    "wrong indentation": ("a: 1\n b: 2", "f.yaml:2: must be valid YAML: mapping values are not allowed here"),
    "two documents": ("a: 1\n---\nb: 2", "f.yaml:2: must hold one YAML document, not several"),
    "an unknown alias": ("a: *b", "f.yaml:1: must be valid YAML: found undefined alias 'b'"),
    "an anchor given twice": ("a: &x 1\nb: &x 2", "f.yaml:2: must give each anchor once, not again"),
    "an alias of itself": ("a: &a\n  - *a", "f.yaml:1: a.0: must not hold an alias of itself"),
    "deep nesting": ("[" * 1000, f"f.yaml:1: must be nested at most {MAX_DEPTH} levels deep"),
    "a control character": (
        "a: 1\nb: \x00",
        "f.yaml:2: must hold printable text only, not the character U+0000",
    ),
    "another YAML version": (
        "%YAML 3.0\n---\na: 1",
        "f.yaml:1: must be valid YAML: found incompatible YAML document (version 1.* is required)",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_gives_one_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yaml")
    assert str(caught.value) == message


def test_an_alias_bomb_is_refused_before_it_is_expanded() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 30)]
    with pytest.raises(
        ConfigError, match=f"must hold at most {MAX_VALUES} values, those of expanded aliases"
    ):
        parse("\n".join(lines), "f.yaml")


def test_aliases_are_expanded_and_have_the_lines_of_where_they_stand() -> None:
    document = parse("a: &x\n  m: 1\nb: *x", "f.yaml")
    assert document.data == {"a": {"m": 1}, "b": {"m": 1}}
    assert document.line_of(("b",)) == 3


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"#%@, \n\t0~<?\\")))
def test_any_text_is_read_or_refused_in_the_one_form(text: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        parse(text, "f.yaml")
    except ConfigError as error:
        problems = error.problems
    assert len(problems) <= 1
    assert all(problem.file == "f.yaml" and problem.message.startswith("must ") for problem in problems)


LINES = """\
# a comment
name: x
layers:
  - m: 1
    n: 2
  - {m: 3,
     n: 4}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("layers",), 3),
        (("layers", 0), 4),
        (("layers", 0, "n"), 5),
        (("layers", 1), 6),
        (("layers", 1, "n"), 7),
        (("layers", 1, "absent"), 6),
        (("absent",), 2),
    ],
)
def test_every_path_knows_its_line_and_an_absent_one_its_parents(
    path: tuple[str | int, ...], line: int
) -> None:
    assert parse(LINES, "f.yaml").line_of(path) == line


def write(folder: Path, content: bytes) -> str:
    path = folder / "study.yaml"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{}: must hold a mapping (key: value) at its top level, not an empty file"),
        (b"# nothing\n", "{}: must hold a mapping (key: value) at its top level, not an empty file"),
        (b"\n- 1", "{}:2: must hold a mapping (key: value) at its top level, not a list"),
        (b"text", "{}:1: must hold a mapping (key: value) at its top level, not a single value"),
        (b"a: 1\nb: \xff", "{}:2: must be UTF-8 text, not the byte 0xff"),
        ("a: 1".encode("utf-16"), "{}:1: must be UTF-8 text, not the byte 0xff"),
    ],
)
def test_a_file_that_is_no_mapping_in_utf_8_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = write(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value) == message.format(file)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    document = load(write(tmp_path, b"\xef\xbb\xbfa: 1\r\nb: caf\xc3\xa9\r\n"))
    assert document.data == {"a": 1, "b": "café"}
    assert document.line_of(("b",)) == 2


def test_a_missing_file_is_told_with_the_name_that_was_probably_meant(tmp_path: Path) -> None:
    file = write(tmp_path, b"a: 1")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "studdy.yaml")
    assert str(caught.value) == f"{tmp_path}/studdy.yaml: must be a file that exists (did you mean {file}?)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "must be a file, not a directory"),
        ("absent/f.yaml", "must be a file that exists"),
        ("x" * 5000, "must be a file that can be read (File name too long)"),
        ("study.yaml/f.yaml", "must be a file that can be read (Not a directory)"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, name: str, message: str) -> None:
    write(tmp_path, b"a: 1")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {message}"


def test_every_shipped_configuration_file_is_read() -> None:
    files = sorted(data_path("configs").rglob("*.yaml"))
    assert files
    assert all(load(file).data for file in files)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("layers", 0, "m"), "layers.0.m"),
        (("instructions", "mma.sp", "latency"), 'instructions."mma.sp".latency'),
        (("a key",), '"a key"'),
        (("",), '""'),
    ],
)
def test_a_path_is_written_with_dots_and_quotes(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text


@given(st.lists(st.text(alphabet="ab.0 =", min_size=1), min_size=1))
def test_a_written_path_is_read_back(path: list[str]) -> None:
    assert parse_path(format_path(path)) == tuple(path)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", 'a"b"', '"a', "a b"])
def test_what_is_no_path_is_told_apart(text: str) -> None:
    assert parse_path(text) is None


def test_a_part_of_a_document_keeps_its_lines_and_its_whole_path() -> None:
    part = parse(LINES, "f.yaml").subtree("layers", 1)
    assert part.data == {"m": 3, "n": 4}
    assert part.prefix == ("layers", 1)
    assert part.place_of(("n",)) == Place("f.yaml", 7)
    assert part.place_of(("absent",)) == Place("f.yaml", 6)


def test_a_part_put_into_a_document_keeps_the_places_of_its_own_file() -> None:
    whole, machine = parse(LINES, "f.yaml"), parse("\nclock: 1 GHz", "machine.yaml")
    both = whole.replaced(("layers", 0), machine).replaced(("machine",), machine)
    assert both.data == {
        "name": "x",
        "layers": [{"clock": "1 GHz"}, {"m": 3, "n": 4}],
        "machine": machine.data,
    }
    assert both.place_of(("machine", "clock")) == Place("machine.yaml", 2)
    assert both.place_of(("layers", 0, "m")) == Place("machine.yaml", 2)
    assert both.place_of(("layers", 1, "n")) == Place("f.yaml", 7)
    assert whole.data["layers"][0] == {"m": 1, "n": 2}


@pytest.mark.parametrize("path", [("a", "b", "c"), ("l", 2), ("s", "x"), ("l", "x")])
def test_a_part_cannot_be_put_where_there_is_no_parent(path: tuple[str | int, ...]) -> None:
    with pytest.raises(KeyError):
        Document({"a": {}, "l": [1], "s": 3}).replaced(path, Document(1))
