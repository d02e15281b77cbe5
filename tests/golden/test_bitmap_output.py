"""C written bitmap-encoded: bytes and cycles, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stcsim.catalog import load_pair
from stcsim.gpu_validation import of_sizes
from stcsim.lowering.bitmap_output import encoded_bytes
from stcsim.result.result import Result
from stcsim.run import Settings, run_gemm


def simulate(m: int, n: int, k: int, density: float | None, split_k: int = 1) -> Result:
    machine, kernel = load_pair("dstc-v100", "spwmma_128x128x32")
    grid = kernel.kernel.grid.model_copy(update={"split_k": split_k})
    changes = {"options": {"output_density": density}, "grid": grid}
    kernel = replace(kernel, kernel=kernel.kernel.model_copy(update=changes))
    return run_gemm(of_sizes(m, n, k), machine, kernel, Settings(check_tiles=1), seed=0)


@pytest.mark.parametrize(
    ("elements", "density", "expected"),
    [
        (0, 1.0, 0),
        # One word of 32 bits, a tile of its own (1 + 32 bits): 65 bits.
        (1, 0.0, 9),
        # 16 words of 32 bits and 256 values of 16, one tile: 512 + 4096 + 33 = 4641 bits.
        (512, 0.5, 581),
        # One element more: 257 values (256.5 is rounded to the even 256), 17 words, two tiles: 544 + 4096 + 66 = 4706.
        (513, 0.5, 589),
    ],
)
def test_values_bitmap_and_offsets_are_all_that_is_stored(
    elements: int, density: float, expected: int
) -> None:
    assert encoded_bytes(elements, density, 16) == expected


def test_a_cta_encodes_its_tile_after_its_last_slab() -> None:
    # 128 x 128 = 512 words; POPC: 33 lanes a word at 4 a cycle on each of 4 sub-cores: 512 * 33 / 16 = 1056 cycles (the
    # others: 512 * 129 / 64 = 1032).  All non-zero, it stores 32768 bytes of values, 2048 of bitmap and 132 of tiles
    # (32 of 33 bits): 2180 more than dense, 69 sectors of 32 bytes (1024 -> 1093).
    dense, encoded = simulate(128, 128, 64, None), simulate(128, 128, 64, 1.0)
    assert dense.traffic_bytes["output"] == 32768
    assert encoded.traffic_bytes["output"] == 32768 + 2048 + 132
    machine, _ = load_pair("dstc-v100", "spwmma_128x128x32")
    assert machine.machine.gpu is not None
    storing = 69 * machine.machine.gpu.stores.full_sector_cycles
    assert encoded.cycles - dense.cycles == pytest.approx(1056 + storing, abs=1)


def test_with_a_split_k_the_second_kernel_encodes_on_all_sms() -> None:
    # 256 x 128: 1024 words over 320 sub-cores: 1024 * 33 / (4 * 320) = 26.4 cycles of POPC, 27 whole.  What it writes
    # changes with the bytes: 65536 dense, 65536 * .5 + 4096 + 264 encoded.
    dense, encoded = simulate(256, 128, 256, None, 2), simulate(256, 128, 256, 0.5, 2)
    machine, _ = load_pair("dstc-v100", "spwmma_128x128x32")
    gpu = machine.machine.gpu
    assert gpu is not None
    saved = (65536 - (32768 + 4096 + 264)) / gpu.l2.write_bandwidth
    second = [result.stalls["split_k"] / result.sub_cores for result in (dense, encoded)]
    assert second[1] - second[0] == pytest.approx(27 - saved, abs=1)


def test_c_is_dense_unless_asked_for_and_a_result_says_so() -> None:
    assert not any("encoded" in note for note in simulate(64, 64, 64, None).notes)
    assert "C is written bitmap-encoded, 0.25 of it non-zero" in simulate(64, 64, 64, 0.25).notes
