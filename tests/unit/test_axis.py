"""Axes: lists, ranges, logarithmic ranges, zips, and the comparisons of constraints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.config.axis import Axis, Constraint, LogRange, Range
from stcsim.config.validation import validate
from stcsim.errors import ConfigError


def test_a_range_holds_both_ends_and_no_rounding_noise() -> None:
    assert Range(first=0.1, last=0.5, step=0.1).values() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert Range(first=2, last=9, step=3).values() == [2, 5, 8]
    assert all(isinstance(value, int) for value in Range(first=2, last=9, step=3).values())


def test_a_log_range_between_whole_numbers_is_whole() -> None:
    assert LogRange(first=32, last=128, points=3).values() == [32, 64, 128]
    assert LogRange(first=1, last=3, points=9).values() == [1, 2, 3]
    assert LogRange(first=1, last=0.001, points=4).values() == [1.0, 0.1, 0.01, 0.001]


def test_axes_of_a_zip_go_hand_in_hand() -> None:
    axis = validate(
        Axis, {"zip": [{"path": "a.b", "values": [1, 2]}, {"path": "c.d", "range": {"first": 7, "last": 8}}]}
    )
    assert axis.settings() == [{"a.b": 1, "c.d": 7}, {"a.b": 2, "c.d": 8}]


@given(first=st.integers(-50, 50), steps=st.integers(0, 40), step=st.integers(1, 9))
def test_a_range_of_whole_numbers_is_pythons(first: int, steps: int, step: int) -> None:
    last = first + steps * step
    assert Range(first=first, last=last, step=step).values() == list(range(first, last + 1, step))


@given(
    first=st.floats(1e-6, 1e6), last=st.floats(1e-6, 1e6), points=st.integers(2, 30)
)  # fmt: skip
def test_a_log_range_goes_from_one_end_to_the_other(first: float, last: float, points: int) -> None:
    values = LogRange(first=first, last=last, points=points).values()
    assert len(values) == points
    assert values[0] == pytest.approx(first, rel=1e-5)
    assert values[-1] == pytest.approx(last, rel=1e-5)
    assert values in (sorted(values), sorted(values, reverse=True))


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ({"values": [1]}, "must have a path with values, range or log_range, or a zip of such axes"),
        ({"path": "a", "values": [1], "range": {"first": 1, "last": 2}}, "must have exactly one of values, range"),
        ({"path": "a b", "values": [1]}, "path: must be a dotted path, such as machine.clock, not a b"),
        ({"path": "a", "zip": [{"path": "b", "values": [1]}, {"path": "c", "values": [1]}]}, "zip: must not be given"),
        ({"zip": [{"path": "b", "values": [1]}, {"path": "c", "values": [1, 2]}]},
         "must have axes of equal length, not 1, 2"),
        ({"path": "a", "range": {"first": 0, "last": 1e9}}, "range.step: must give at most 10000 values, not 1"),
        ({"path": "a", "values": []}, "values: must have at least 1 item"),
    ],
)  # fmt: skip
def test_what_is_no_axis_is_told(axis: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate(Axis, axis)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("compare", "true", "false"),
    [
        ("at_least", (4, 4), (3, 4)), ("at_most", (4, 4), (5, 4)), ("greater_than", (5, 4), (4, 4)),
        ("less_than", (3, 4), (4, 4)), ("equal", (4, 4.0), (4, 5)), ("not_equal", (4, 5), (4, 4)),
        ("multiple_of", (32, 8), (20, 8)), ("divides", (8, 32), (8, 20)),
    ],
)  # fmt: skip
def test_every_comparison_means_what_it_says(
    compare: Any, true: tuple[int, int], false: tuple[int, int]
) -> None:
    constraint = Constraint(left="kernel.stages", compare=compare, right=0)
    assert constraint.holds(*true)
    assert not constraint.holds(*false)


def test_nothing_is_a_multiple_of_zero() -> None:
    assert not Constraint(left=1, compare="multiple_of", right=0).holds(4, 0)
