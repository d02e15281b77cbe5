"""Vectors along K with offsets: storage, misfits and pruning, by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.errors import FormatError, IsaError
from stcsim.formats.vector_wise import VectorWiseFormat
from stcsim.isa import offset
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern


@pytest.mark.parametrize("side", ["a", "b"])
def test_four_of_sixteen_are_stored_with_the_lowest_spare_places_beside_the_non_zeros(side: str) -> None:
    row = np.zeros((1, 32), np.int8)
    row[0, [2, 7, 12, 14]] = [5, 6, 7, 8]
    row[0, [16 + 3]] = 9
    form = VectorWiseFormat(side=side)
    encoded = form.encode(row if side == "a" else row.T)
    assert encoded.values.tolist() == [[[5, 6, 7, 8], [0, 0, 0, 9]]]
    assert encoded.offsets.tolist() == [[[2, 7, 12, 14], [0, 1, 2, 3]]]
    # Two offsets a byte, the first in the low bits: 72, ec, 10, 32.
    assert encoded.packed.tolist() == [0x72, 0xEC, 0x10, 0x32]
    np.testing.assert_array_equal(form.decode(encoded), row if side == "a" else row.T)


def test_offsets_of_three_bits_run_across_bytes() -> None:
    encoded = VectorWiseFormat(n=2, m=8).encode(np.array([[0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]]))
    assert encoded.offsets.tolist() == [[[1, 5], [0, 7]]]
    # 1, 5, 0, 7 from the lowest bit: 100 101 | 000 111 -> bits 10010100 0111.
    assert encoded.packed.tolist() == [0b00101001, 0b1110]


def test_a_stored_operand_takes_a_quarter_and_a_quarter_of_that_for_offsets() -> None:
    pattern = MaskPattern(np.zeros((16, 64), bool))
    assert VectorWiseFormat().stored_bits(pattern, 16) == {"values": 16 * 16 * 16, "offsets": 16 * 16 * 4}
    # K = 65: a fifth vector, filled up with zeros.
    ragged = MaskPattern(np.zeros((16, 65), bool))
    assert VectorWiseFormat().stored_bits(ragged, 16) == {"values": 16 * 20 * 16, "offsets": 16 * 20 * 4}
    # Of the fifth vector's elements there is only one to multiply.
    assert [VectorWiseFormat().stored_k(k) for k in (0, 1, 5, 16, 64, 65, 79)] == [0, 1, 4, 4, 16, 17, 20]


@pytest.mark.parametrize(("n", "m"), [(0, 4), (4, 4), (5, 4), (1, 1), (4, 257)])
def test_vectors_that_keep_nothing_or_everything_are_refused(n: int, m: int) -> None:
    message = f"^a vector must keep at least 1 of 2 to 256 elements, and not all, not {n} of {m}$"
    with pytest.raises(FormatError, match=message):
        VectorWiseFormat(n=n, m=m)


def test_the_first_crowded_vector_is_named() -> None:
    mask = np.zeros((3, 40), bool)
    mask[2, 32:37] = True
    message = (
        "must have at most 4 non-zeros in every 16 consecutive elements along k (axis 1 of A), "
        "not 5 in row 2, columns 32 to 39 (1 of 9 groups have too many)"
    )
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        VectorWiseFormat().encode(mask)


def test_pruning_a_dense_operand_drops_three_quarters_and_keeps_the_largest() -> None:
    dense = Operand(DensePattern((8, 64)), "weight", 0, "dense()")
    pruned, loss = VectorWiseFormat().project(dense)
    assert loss == 0.75
    assert pruned.source == "dense(), pruned to 4:16 by magnitude"
    before, after = np.abs(dense.values(0, 8, 0, 64)), pruned.values(0, 8, 0, 64) != 0
    for row in range(8):
        for k in range(0, 64, 16):
            vector = before[row, k : k + 16].tolist()
            best = sorted(range(16), key=lambda i: (-vector[i], i))[:4]
            assert np.flatnonzero(after[row, k : k + 16]).tolist() == sorted(best)


@given(
    n=st.integers(1, 20), extra=st.integers(1, 20), shape=st.tuples(st.integers(0, 7), st.integers(0, 70)),
    seed=st.integers(0, 99), side=st.sampled_from("ab"),
)  # fmt: skip
def test_any_vector_is_pruned_stored_and_restored(
    n: int, extra: int, shape: tuple[int, int], seed: int, side: str
) -> None:
    form = VectorWiseFormat(side=side, n=n, m=n + extra)
    values = np.random.default_rng(seed).integers(-9, 10, shape)
    kept = values * form.keep(values)
    encoded = form.encode(kept)
    np.testing.assert_array_equal(form.decode(encoded), kept)
    assert (np.diff(encoded.offsets.astype(int), axis=2) > 0).all()
    # Pruned once is pruned: what fits loses nothing.
    np.testing.assert_array_equal(form.keep(kept), kept != 0)


@given(st.integers(0, 99), st.integers(0, 1))
def test_offset_registers_hold_every_row_where_its_octets_read_it(seed: int, selector: int) -> None:
    offsets = np.random.default_rng(seed).integers(0, 16, (16, 4))
    word = offset.pack(offsets, selector)
    by_octet = offset.unpack(word, selector)
    for octet in range(4):
        first = 8 * (octet % 2)
        np.testing.assert_array_equal(by_octet[octet], offsets[first : first + 8])
    assert not offset.unpack(word, 1 - selector).any()


def test_faulty_offsets_are_refused() -> None:
    with pytest.raises(IsaError, match=r"^an offset must be from 0 to 15, not 16$"):
        offset.pack(np.full((16, 4), 16))
    with pytest.raises(IsaError, match=r"^offsets must be those of 16 x 4 elements, not 8 x 4$"):
        offset.pack(np.zeros((8, 4), int))
