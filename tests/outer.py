"""Drawn outer-product SMs and their work, for the tests of both engines and of the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from stcsim.machine.outer_record import Buffer, OuterModel, OuterWork


@dataclass(frozen=True)
class Case:
    """A model, its work, and the ones of every bitmap word."""

    model: OuterModel
    work: OuterWork
    ones_a: NDArray[np.uint8]
    ones_b: NDArray[np.uint8]


PLAIN = {
    "sub_cores": 1, "resident_ctas": 1, "greedy": True, "m_warp": 32, "n_warp": 32, "m_inst": 8, "n_inst": 16,
    "k": 0, "k_slab": 16, "slabs_per_stage": 2, "interval_cycles": 1, "latency_cycles": 4,
    "buffer": int(Buffer.UNLIMITED), "words_per_cycle": 1, "bank_of": np.zeros((32, 32), np.int64), "n_banks": 1,
    "accesses_per_cycle": 1, "window": 1, "step_milli": 0, "skipped_milli": 0, "popc_cycles": 0,
    "popc_latency_cycles": 0, "popc_instructions": 1, "shared_issue": False, "load_wavefront_cycles": 0,
    "load_latency_cycles": 0, "bitmap_wavefronts": 2, "bitmap_loads": 2, "element_bytes": 2,
    "load_c_words_per_cycle": 0, "drain_words_per_cycle": 0, "barrier_base_cycles": -1, "barrier_warp_cycles": 0,
}  # fmt: skip
"""An SM in which nothing but the tensor pipe takes time; tests turn on one mechanism each."""


def case(
    masks_a: list[NDArray[np.bool_]],
    masks_b: list[NDArray[np.bool_]],
    tiles: list[tuple[int, int]],
    *,
    warps: int = 1,
    words: int = 1024,
    **changes: object,
) -> Case:
    """Make a case of one SM.

    Parameters
    ----------
    masks_a : list of ndarray of bool, shape (m_warp, k)
        One for each row of warp tiles.
    masks_b : list of ndarray of bool, shape (k, n_warp)
        One for each column of warp tiles.
    tiles : list of (int, int)
        Warp tiles in order; every `warps` of them make a CTA.
    warps, words : int
    changes
        Fields of `OuterModel` that differ from `PLAIN`.
    """
    k = masks_a[0].shape[1]
    model = OuterModel(**{**PLAIN, "k": k, **changes})  # type: ignore[arg-type]
    n = len(tiles)
    n_ctas = -(-n // warps)
    counts = [min(warps, n - warps * i) for i in range(n_ctas)]
    bits_a = np.array([[pack(column) for column in mask.T] for mask in masks_a], np.uint64).reshape(-1, k)
    bits_b = np.array([[pack(row) for row in mask] for mask in masks_b], np.uint64).reshape(-1, k)
    work = OuterWork(
        offsets=np.array([0, n_ctas], np.int64),
        warp_offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        warp_index=np.array([i for count in counts for i in range(count)], np.int64),
        tile_m=np.array([i for i, _ in tiles], np.int64),
        tile_n=np.array([j for _, j in tiles], np.int64),
        words=np.full(n, words, np.int64),
        warps=warps,
        bits_a=bits_a,
        bits_b=bits_b,
    )
    ones_a = np.array([mask.sum(0) for mask in masks_a], np.uint8).reshape(-1, k)
    ones_b = np.array([mask.sum(1) for mask in masks_b], np.uint8).reshape(-1, k)
    return Case(model, work, ones_a, ones_b)


def pack(flags: NDArray[np.bool_]) -> int:
    """Return a word whose bit i is flag i."""
    return sum(1 << i for i, flag in enumerate(flags) if flag)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw an SM with every mechanism, and up to five CTAs of ragged warps on it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m_warp, n_warp = draw(st.sampled_from([8, 16, 32])), draw(st.sampled_from([16, 32]))
    banks = draw(st.sampled_from([4, 8, 16]))
    k, warps = draw(st.integers(1, 60)), draw(st.integers(1, 5))
    densities = [draw(st.sampled_from([0.02, 0.3, 1.0])) for _ in range(2)]
    masks_a = [rng.random((m_warp, k)) < densities[0] for _ in range(2)]
    masks_b = [rng.random((k, n_warp)) < densities[1] for _ in range(2)]
    tiles = [(int(i), int(j)) for i, j in rng.integers(0, 2, (draw(st.integers(0, 11)), 2))]
    return case(
        masks_a, masks_b, tiles, warps=warps, words=draw(st.integers(1, m_warp * n_warp)),
        sub_cores=draw(st.sampled_from([1, 2, 4])),
        resident_ctas=draw(st.integers(1, 2)),
        greedy=draw(st.booleans()),
        m_warp=m_warp, n_warp=n_warp,
        k_slab=draw(st.sampled_from([4, 16])),
        slabs_per_stage=draw(st.integers(1, 2)),
        interval_cycles=draw(st.sampled_from([1, 1, 2])),
        latency_cycles=draw(st.integers(1, 5)),
        buffer=draw(st.sampled_from([int(item) for item in Buffer])),
        words_per_cycle=draw(st.sampled_from([40, 116, 128])),
        bank_of=rng.integers(0, banks, (m_warp, n_warp)), n_banks=banks,
        accesses_per_cycle=draw(st.integers(1, 2)),
        window=draw(st.integers(1, 3)),
        step_milli=draw(st.sampled_from([0, 450, 1300])),
        skipped_milli=draw(st.sampled_from([0, 0, 1000])),
        popc_cycles=draw(st.sampled_from([0, 8, 64])),
        popc_latency_cycles=draw(st.integers(0, 4)),
        shared_issue=draw(st.booleans()),
        load_wavefront_cycles=draw(st.sampled_from([0, 1, 4])),
        load_latency_cycles=draw(st.sampled_from([0, 1, 23])),
        load_c_words_per_cycle=draw(st.sampled_from([0, 0, 32])),
        drain_words_per_cycle=draw(st.sampled_from([0, 32])),
        barrier_base_cycles=draw(st.sampled_from([-1, 0, 13])),
        barrier_warp_cycles=draw(st.sampled_from([0, 2])),
    )  # fmt: skip
