"""Fragment layouts, against positions written out by hand from the PTX ISA's figures."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import fragment, load_isa

ISA = load_isa()
FRAGMENTED = [m for m, spec in ISA.items() if spec.semantics in ("mma", "mma_sparse", "mma_octet")]
INTEGERS = {"int8", "uint8", "int4", "uint4", "int32"}


def halves(registers: np.ndarray, lane: int) -> list[float]:
    """Return the fp16 values of one lane, register by register, low half first."""
    return registers[:, lane].copy().view(np.float16).tolist()


def test_a_of_m16n8k16_lies_as_in_the_ptx_figure():
    tile = 16.0 * np.arange(16)[:, None] + np.arange(16)  # element (m, k) is 16 m + k
    registers = fragment.pack_a(ISA["HMMA.16816.F32"], tile)
    assert registers.shape == (4, 32)
    # Lane 5: group 1, thread 1 of it: rows 1 and 9, columns 2, 3 and 10, 11.
    assert halves(registers, 5) == [18, 19, 146, 147, 26, 27, 154, 155]


def test_b_of_m16n8k16_lies_as_in_the_ptx_figure():
    tile = 8.0 * np.arange(16)[:, None] + np.arange(8)  # element (k, n) is 8 k + n
    registers = fragment.pack_b(ISA["HMMA.16816.F32"], tile)
    # Lane 14: group 3, thread 2 of it: column 3, k 4, 5 and 12, 13.
    assert halves(registers, 14) == [35, 43, 99, 107]


def test_c_of_m16n8k16_lies_as_in_the_ptx_figure():
    tile = 8.0 * np.arange(16)[:, None] + np.arange(8)
    registers = fragment.pack_c(ISA["HMMA.16816.F32"], tile)
    # Lane 14: rows 3 and 11, columns 4, 5.
    assert registers[:, 14].copy().view(np.float32).tolist() == [28, 29, 92, 93]


def test_a_and_b_of_the_int8_m16n8k32_hold_four_neighbours_in_a_word():
    a = (np.arange(16)[:, None] * 8 + np.arange(32)) % 128
    b = (np.arange(32)[:, None] * 4 + np.arange(8)) % 128
    spec = ISA["IMMA.16832.S8"]
    # Lane 6: group 1, thread 2: row 1 (then 9), k 8..11, then k 24..27.
    lane = fragment.pack_a(spec, a)[:, 6].copy().view(np.int8).tolist()
    assert lane == [a[r, k] for r, k in [(r, k) for k0 in (8, 24) for r in (1, 9) for k in range(k0, k0 + 4)]]
    lane = fragment.pack_b(spec, b)[:, 6].copy().view(np.int8).tolist()
    assert lane == [b[k, 1] for k in (8, 9, 10, 11, 24, 25, 26, 27)]


def test_a_of_the_tf32_m16n8k8_holds_one_element_in_a_word():
    tile = 8.0 * np.arange(16)[:, None] + np.arange(8)
    registers = fragment.pack_a(ISA["HMMA.1688.F32.TF32"], tile)
    # Lane 13: group 3, thread 1: (3, 1), (11, 1), (3, 5), (11, 5).
    assert registers[:, 13].copy().view(np.float32).tolist() == [25, 89, 29, 93]


def test_int4_elements_fill_a_word_from_its_low_nibble():
    tile = np.zeros((16, 64), dtype=int)
    tile[0, :8] = [1, 2, 3, 4, 5, 6, 7, -1]
    assert fragment.pack_a(ISA["IMMA.16864.S4"], tile)[0, 0] == 0xF7654321


def test_a_of_hmma884_is_loaded_by_two_octets():
    tile = 4.0 * np.arange(16)[:, None] + np.arange(4)
    registers = fragment.pack_a(ISA["HMMA.884.F32.F32.STEP0"], tile)
    # Row 5 = row 1 of the upper half of octets 0 and 2: lanes 16 + 1 and 16 + 8 + 1.
    assert halves(registers, 17) == halves(registers, 25) == [20, 21, 22, 23]
    # Octets 1 and 3 hold rows 8..15: row 8 in lanes 4 and 12.
    assert halves(registers, 4) == halves(registers, 12) == [32, 33, 34, 35]


def test_c_of_hmma884_has_its_pairs_in_the_order_of_the_steps():
    tile = 16.0 * np.arange(16)[:, None] + np.arange(16)
    registers = fragment.pack_c(ISA["HMMA.884.F32.F32.STEP0"], tile)
    # Lane 18 = octet 0, upper half, 2 of its quarter: rows 4 and 6, columns 2, 3 and 6, 7.
    values = registers[:, 18].copy().view(np.float32).tolist()
    assert values == [16 * r + c for r, c in [(4, 2), (4, 3), (6, 2), (6, 3), (4, 6), (4, 7), (6, 6), (6, 7)]]


@pytest.mark.parametrize("mnemonic", FRAGMENTED)
@pytest.mark.parametrize("role", ["a", "b", "c"])
def test_unpacking_what_was_packed_gives_the_tile(
    mnemonic: str, role: fragment.Role, rng: np.random.Generator
):
    spec = ISA[mnemonic]
    layout = fragment.operand_layout(spec, role)
    least = 0 if str(layout.dtype).startswith("u") else -8
    tile = rng.integers(least, 8, layout.shape)
    registers = layout.pack(tile)
    assert registers.dtype == np.uint32
    n_steps = {"fp32": 4, "fp16": 2}[spec.parameters["c"]] if spec.family == "hmma884" and role == "c" else 1
    count = next(operand.count for operand in spec.operands if operand.name == role)
    assert len(registers) == n_steps * count  # a step of HMMA.884 names one pair of its set's sums
    np.testing.assert_array_equal(layout.unpack(registers), tile)


def test_bf16_rounds_to_nearest_even_and_keeps_infinities():
    words = fragment.encode(np.array([1.00390625, 1.01171875, np.inf, -np.inf]), "bf16")
    # 1 + 1/256 lies between 0x3F80 and 0x3F81: to the even one; 1 + 3/256 between 0x3F81 and 0x3F82.
    assert words.view(np.uint16).tolist() == [0x3F80, 0x3F82, 0x7F80, 0xFF80]


def test_a_tile_of_the_wrong_shape_is_refused():
    with pytest.raises(IsaError, match=r"^tile must be 16 x 16, not 16 x 8$"):
        fragment.pack_a(ISA["HMMA.16816.F32"], np.zeros((16, 8)))


def test_an_integer_that_does_not_fit_is_refused():
    with pytest.raises(IsaError, match=r"^int8 element must be a whole number from -128 to 127, not 128$"):
        fragment.pack_a(ISA["IMMA.16832.S8"], np.full((16, 32), 128))


def test_an_instruction_without_fragments_is_refused():
    with pytest.raises(IsaError, match=r"^instruction must multiply register fragments, not OHMMA\.8161$"):
        fragment.pack_a(ISA["OHMMA.8161"], np.zeros((8, 1)))
