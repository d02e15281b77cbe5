"""What every operand format must hold, built-in or not: `check_format` is the suite of one format.

A format that does not take every pattern needs a row in `FITTING`.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.errors import ConfigError, FormatError, Problem
from stcsim.formats import FORMATS
from stcsim.formats.format import Format
from stcsim.workload.pattern import DensePattern, MaskPattern


def at_most(n, m):
    """Return a function that clears, in a loop, what exceeds n non-zeros of m along K."""

    def clear(values, k_axis):
        by_k = np.moveaxis(values.copy(), k_axis, 0)
        for k0 in range(0, len(by_k), m):
            for j in range(by_k.shape[1]):
                for place in np.flatnonzero(by_k[k0 : k0 + m, j])[n:]:
                    by_k[k0 + place, j] = 0
        return np.moveaxis(by_k, 0, k_axis)

    return clear


FITTING = {"nm": at_most(2, 4), "vector_wise": at_most(4, 16), "k_expanded": at_most(6, 8)}
"""For each format that refuses some patterns: make values whose pattern it takes."""

DTYPES = ["int8", "int16", "int32", "float16", "float32", "float64"]


@st.composite
def operands(draw):
    """Matrices with sides that are empty, one, ragged or whole tiles, and any share of zeros."""
    sides = st.one_of(st.integers(0, 5), st.sampled_from([15, 16, 17, 31, 32, 33, 64, 65]))
    shape = (draw(sides), draw(sides))
    density = draw(st.sampled_from([0, 0.02, 0.3, 0.7, 1]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(1, 8, shape) * rng.choice([-1, 1], shape) * (rng.random(shape) < density)
    if draw(st.booleans()) and shape[0] > 16:
        values[:16] = 0  # whole tiles without a non-zero
    return values.astype(draw(st.sampled_from(DTYPES)))


def check_format(cls: type[Format], name: str) -> None:
    """Hold a format to what `stcsim.formats.format.Format` promises, on drawn operands of both sides."""
    assert cls.name == name
    assert inspect.getmodule(cls).__name__.rpartition(".")[2] == name or not cls.__module__.startswith(
        "stcsim."
    )
    assert cls.summary
    assert not cls.summary.endswith(".")
    for side in ("a", "b"):
        check_operands(cls(side=side))
        check_refusals(cls(side=side))
    with pytest.raises(FormatError, match=r"^the side of an operand must be a or b, not left$"):
        cls(side="left")


def check_operands(form: Format) -> None:
    fit = FITTING.get(form.name, lambda values, k_axis: values)

    @given(values=operands())
    def round_trip_and_size(values):
        values = fit(values, form.k_axis)
        before = values.copy()
        pattern = MaskPattern(values != 0)
        assert form.accepts(pattern) is None
        encoded = form.encode(values)
        decoded = form.decode(encoded)
        assert encoded.shape == decoded.shape == values.shape
        assert decoded.dtype == values.dtype
        np.testing.assert_array_equal(decoded, values)
        np.testing.assert_array_equal(values, before)
        assert not np.shares_memory(decoded, values)

        parts = encoded.parts()
        assert parts["values"].dtype == values.dtype
        for element_bits in (4, 8, 16, 32):
            held = {
                part: array.size * element_bits if part == "values" else array.nbytes * 8
                for part, array in parts.items()
            }
            stored = form.stored_bits(pattern, element_bits)
            assert stored == held
            assert all(type(bits) is int for bits in stored.values())
        assert form.stored_bits(pattern.transpose().transpose(), 16) == form.stored_bits(pattern, 16)

        other = type(form)(side="b" if form.side == "a" else "a")
        assert other.stored_bits(pattern.transpose(), 16) == form.stored_bits(pattern, 16)
        mirrored = other.encode(values.T).parts()
        for part, array in parts.items():
            if form.name != "dense":
                np.testing.assert_array_equal(mirrored[part], array)

    round_trip_and_size()


def check_refusals(form: Format) -> None:
    for values in (np.zeros(3), np.zeros((1, 2, 3)), np.array([["a"]]), np.zeros((2, 2), complex)):
        with pytest.raises(
            FormatError, match=r"^an operand must be a two-dimensional array of numbers, not "
        ):
            form.encode(values)
    crowded = DensePattern((8, 8))
    problem = form.accepts(crowded)
    if form.name in FITTING:
        assert isinstance(problem, Problem)
        with pytest.raises(FormatError) as caught:
            form.encode(np.ones((8, 8)))
        assert caught.value.problems == (problem,)
    else:
        assert problem is None
        assert form.stored_bits(crowded, 16) == form.stored_bits(MaskPattern(crowded.mask()), 16)


@pytest.mark.parametrize("name", FORMATS.names())
def test_a_registered_format_keeps_the_contract(name):
    check_format(FORMATS[name], name)


def test_an_unknown_format_is_refused_with_the_nearest_name():
    known = r"bitmap, dense, k_expanded, nm, vector_wise"
    message = rf"^must be a known format \({known}\), not bitmpa \(did you mean bitmap\?\)$"
    with pytest.raises(ConfigError, match=message):
        FORMATS["bitmpa"]
