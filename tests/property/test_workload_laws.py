"""Laws of patterns, operands, generators and GEMMs on whatever hypothesis draws."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from stcsim.formats.nm import NmFormat
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Block, Clustered, Nm, Uniform, generate
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern
from stcsim.workload.pattern_file import load_pattern, save_patterns

sizes = st.integers(0, 70)
densities = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


@st.composite
def patterns(draw, shape=None):
    rows, cols = shape or (draw(sizes), draw(sizes))
    if draw(st.integers(0, 9)) == 0:
        return DensePattern((rows, cols))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    mask = rng.random((rows, cols)) < draw(densities)
    return MaskPattern(mask.T.copy()).transpose() if draw(st.booleans()) else MaskPattern(mask)


@given(pattern=patterns(), axis=st.integers(0, 1), length=st.integers(1, 80))
def test_group_counts_are_sums_over_slices_and_add_up_to_nnz(pattern, axis, length):
    mask = np.moveaxis(np.array(pattern.mask()), axis, 0)
    counts = np.moveaxis(pattern.group_counts(axis, length), axis, 0)
    expected = [mask[i : i + length].sum(axis=0).tolist() for i in range(0, len(mask), length)]
    assert counts.tolist() == expected
    assert counts.sum(dtype=np.int64) == pattern.nnz == mask.sum()


@given(pattern=patterns())
def test_transposing_exchanges_rows_and_columns(pattern):
    flipped = pattern.transpose()
    np.testing.assert_array_equal(flipped.mask(), np.array(pattern.mask()).T)
    assert flipped.counts_per_row().tolist() == pattern.counts_per_col().tolist()
    assert flipped.transpose() == pattern
    assert (flipped == pattern) == (
        flipped.shape == pattern.shape and np.array_equal(flipped.mask(), pattern.mask())
    )


@given(
    pattern=patterns(),
    corner=st.tuples(sizes, sizes),
    extent=st.tuples(sizes, sizes),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_block_of_an_operand_is_that_part_of_the_whole(pattern, corner, extent, seed):
    operand = Operand(pattern, "weight", seed, "drawn")
    whole = operand.values(0, *pattern.shape[:1], 0, *pattern.shape[1:])
    (r0, c0), (r1, c1) = corner, (corner[0] + extent[0], corner[1] + extent[1])
    np.testing.assert_array_equal(operand.values(r0, r1, c0, c1), whole[r0:r1, c0:c1])
    np.testing.assert_array_equal(operand.transpose().values(c0, c1, r0, r1), whole[r0:r1, c0:c1].T)
    np.testing.assert_array_equal(whole != 0, pattern.mask())
    assert np.abs(whole.astype(int)).max(initial=0) <= operand.magnitude


@given(data=st.data(), m=sizes, k=sizes, n=sizes)
def test_useful_macs_are_the_non_zero_products_and_at_most_all(data, m, k, n):
    a = Operand(data.draw(patterns((m, k))), "activation", 1, "drawn")
    b = Operand(data.draw(patterns((k, n))), "weight", 2, "drawn")
    gemm = Gemm("drawn", a, b)
    products = np.array(a.pattern.mask(), dtype=np.int64) @ np.array(b.pattern.mask(), dtype=np.int64)
    assert gemm.macs_useful == products.sum() == gemm.transposed().macs_useful <= gemm.macs_total == m * n * k


@given(data=st.data(), m=st.integers(1, 40), n=st.integers(1, 40), k=st.integers(1, 70))
def test_fp32_sums_of_products_are_exact(data, m, n, k):
    a = Operand(data.draw(patterns((m, k))), "activation", data.draw(st.integers(0, 99)), "drawn")
    b = Operand(data.draw(patterns((k, n))), "weight", data.draw(st.integers(0, 99)), "drawn")
    wide = a.values(0, m, 0, k).astype(np.int64) @ b.values(0, k, 0, n).astype(np.int64)
    narrow = np.zeros((m, n), dtype=np.float32)
    for i in range(k):
        column = a.values(0, m, i, i + 1).astype(np.float16).astype(np.float32)
        narrow += column * b.values(i, i + 1, 0, n).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(narrow, wide)


@given(
    rows=sizes,
    cols=sizes,
    density=densities,
    spreads=st.tuples(st.floats(0, 4), st.floats(0, 4)),
    runs=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    seed=st.integers(0, 2**64 - 1),
)
@example(rows=1, cols=1, density=1e-308, spreads=(0.0, 4.0), runs=(1, 1), seed=0)
def test_generated_masks_meet_their_density_to_the_element(rows, cols, density, spreads, runs, seed):
    clustered = Clustered(
        density=density, row_spread=spreads[0], col_spread=spreads[1], row_run=runs[0], col_run=runs[1]
    )
    for options in (Uniform(density=density), clustered):
        pattern = generate(options, (rows, cols), seed=seed)
        assert pattern.shape == (rows, cols)
        assert np.count_nonzero(pattern.mask()) == pattern.nnz == round(density * (rows * cols))


@given(rows=sizes, cols=sizes, k_axis=st.integers(0, 1), seed=st.integers(0, 2**32))
def test_nm_masks_fit_the_nm_format(rows, cols, k_axis, seed):
    pattern = generate(Nm(), (rows, cols), seed=seed, k_axis=k_axis)
    assert NmFormat(side="a" if k_axis else "b").accepts(pattern) is None
    k, outer = pattern.shape[k_axis], pattern.shape[1 - k_axis]
    assert pattern.nnz == outer * (2 * (k // 4) + min(2, k % 4))


@given(
    rows=sizes,
    cols=sizes,
    height=st.integers(1, 80),
    width=st.integers(1, 80),
    density=densities,
    seed=st.integers(0, 99),
)
def test_block_masks_are_made_of_whole_blocks(rows, cols, height, width, density, seed):
    mask = generate(Block(rows=height, cols=width, density=density), (rows, cols), seed=seed).mask()
    corners = mask[::height, ::width]
    assert np.count_nonzero(corners) == round(density * corners.size)
    enlarged = np.repeat(np.repeat(corners, height, axis=0), width, axis=1)[:rows, :cols]
    np.testing.assert_array_equal(mask, enlarged)


@given(data=st.data())
def test_bitmap_files_give_back_what_was_saved(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "p.npz"
    saved = {name: data.draw(patterns()) for name in ("x", "y.z")}
    save_patterns(path, saved, {})
    for name, pattern in saved.items():
        assert load_pattern(path, name) == pattern
