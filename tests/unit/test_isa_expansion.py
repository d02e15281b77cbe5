"""Warp-level instructions taken apart, and outer products of other shapes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import Accumulator, Immediate, Instruction, Predicate, Register, WarpState, execute, load_isa
from stcsim.isa.encoding import encode
from stcsim.isa.expansion import expand, outer_product_rows

R = Register
ACC = Accumulator(0)
SPWMMA = Instruction("SpWMMA", (ACC, R(8), R(16), R(0), R(1), R(2), R(4)))


def words(flags: np.ndarray) -> list[int]:
    return [sum(1 << i for i, flag in enumerate(row) if flag) for row in flags]


def test_a_spwmma_stands_for_counts_predicates_positions_and_128_outer_products():
    steps = list(expand(SPWMMA))
    assert Counter(step.mnemonic for step in steps) == {
        "POPC": 2,
        "OSETP.8161": 4,
        "BOHMMA.32321": 16,
        "OHMMA.8161": 128,
    }
    first = [str(step) for step in steps[:10]]
    assert first == [
        "POPC R2, R0",
        "POPC R3, R1",
        "OSETP.8161 P0, R2, R3, 0, 0",
        "OSETP.8161 P1, R2, R3, 1, 0",
        "OSETP.8161 P2, R2, R3, 2, 0",
        "OSETP.8161 P3, R2, R3, 3, 0",
        "BOHMMA.32321 R4, R0, R1, 0",
        "@P0 OHMMA.8161 ACC0, R8, R16, R0, R1, 0, 0, 0",
        "@P0 OHMMA.8161 ACC0, R8, R16, R0, R1, 0, 0, 1",
        "@P1 OHMMA.8161 ACC0, R8, R16, R0, R1, 0, 1, 0",
    ]


def test_one_count_serves_both_operands_when_their_words_share_a_register():
    both = Instruction("SpWMMA", (ACC, R(8), R(16), R(0), R(0), R(2), R(4)))
    assert sum(step.mnemonic == "POPC" for step in expand(both)) == 1


def test_the_published_example_executes_three_of_eight_outer_products():
    bits_a, bits_b = [0] * 16, [0] * 16
    bits_a[4], bits_b[4] = (1 << 20) - 1, 0x3FF << 7  # 20 ones and 10 ones
    steps = list(expand(SPWMMA, bits_a=bits_a, bits_b=bits_b))
    issued = [str(step) for step in steps if step.mnemonic == "OHMMA.8161"]
    assert issued == [f"@P{i} OHMMA.8161 ACC0, R8, R16, R0, R1, 4, {i}, 0" for i in range(3)]


def test_an_owmma_is_32_unguarded_outer_products():
    steps = list(expand(Instruction("OWMMA", (ACC, R(8), R(16), R(4)))))
    assert str(steps[0]) == "MOV R4, 0xffff"
    assert Counter(step.mnemonic for step in steps[1:]) == {"OHMMA.8161": 32}
    assert not any(step.guard for step in steps)


def test_expanding_a_machine_instruction_is_an_error():
    with pytest.raises(IsaError, match=r"^instruction must be SpWMMA or OWMMA, not NOP$"):
        list(expand(Instruction("NOP")))


def test_the_papers_geometry_is_the_shipped_rows():
    isa = load_isa()
    rows = outer_product_rows()
    assert rows.outer_product is isa["OHMMA.8161"]
    assert rows.warp_product is isa["SpWMMA"]


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ((8, 16, 65, 32), "m_warp must be from 1 to 64, not 65"),
        ((8, 16, 32, 0), "n_warp must be from 1 to 64, not 0"),
        ((2, 16, 64, 32), "m_inst must make 1 to 16 groups of m_warp = 64, not 2"),
        ((8, 40, 32, 32), "n_inst must make 1 to 16 groups of n_warp = 32, not 40"),
    ],
)
def test_a_geometry_out_of_range_is_refused(geometry: tuple[int, ...], message: str):
    with pytest.raises(IsaError, match=f"^{message}$"):
        outer_product_rows(*geometry)


def test_large_tiles_want_separate_bitmap_registers():
    rows = outer_product_rows(8, 16, 64, 64)
    operands = (ACC, R(16), R(32), R(0), R(0), R(4), R(8))
    macro = Instruction(rows.warp_product.mnemonic, operands, row=rows.warp_product)
    with pytest.raises(
        IsaError, match=r"^bits of a 64 x 64 tile must be in separate registers, not both in R0$"
    ):
        list(expand(macro, rows))


@pytest.mark.parametrize(
    ("m_inst", "n_inst", "m_warp", "n_warp"),
    [
        (8, 16, 32, 32),
        (4, 32, 32, 32),
        (16, 8, 32, 32),
        (8, 8, 64, 64),
        (8, 16, 48, 64),
        (5, 7, 20, 33),
        (32, 32, 32, 32),
    ],
)
@pytest.mark.parametrize("density", [0.1, 0.6])
def test_any_geometry_expands_to_the_product_of_the_original_tiles(
    m_inst: int, n_inst: int, m_warp: int, n_warp: int, density: float, rng: np.random.Generator
):
    rows = outer_product_rows(m_inst, n_inst, m_warp, n_warp)
    a = rng.integers(1, 9, (m_warp, 16)) * (rng.random((m_warp, 16)) < density)
    b = rng.integers(1, 9, (16, n_warp)) * (rng.random((16, n_warp)) < density)
    whole, parts = (WarpState(np.zeros(16, dtype=np.uint8), m_warp=m_warp, n_warp=n_warp) for _ in range(2))
    bits_a, bits_b = words(a.T != 0), words(b != 0)
    for state in (whole, parts):
        for half in range(2):
            state.registers[0 + half, :16] = [word >> 32 * half & 0xFFFFFFFF for word in bits_a]
            state.registers[2 + half, :16] = [word >> 32 * half & 0xFFFFFFFF for word in bits_b]
        for first, values in ((16, a.T[a.T != 0]), (32, b[b != 0])):
            packed = np.zeros(1024, dtype=np.float16)
            packed[: values.size] = values
            state.registers[first : first + 16] = packed.view(np.uint32).reshape(16, 32)
    operands = (ACC, R(16), R(32), R(0), R(2), R(4), R(8))
    macro = Instruction(rows.warp_product.mnemonic, operands, row=rows.warp_product)
    execute(macro, whole)
    executed = [step.mnemonic for step in expand(macro, rows) if execute(step, parts)]
    issued = executed.count(rows.outer_product.mnemonic)
    np.testing.assert_array_equal(whole.accumulators[0], a @ b)
    np.testing.assert_array_equal(parts.accumulators[0], a @ b)
    ones_a, ones_b = (a != 0).sum(axis=0), (b != 0).sum(axis=1)
    assert issued == sum(
        -(-int(na) // m_inst) * -(-int(nb) // n_inst) for na, nb in zip(ones_a, ones_b, strict=True)
    )
    predicted = expand(macro, rows, bits_a=bits_a, bits_b=bits_b)
    assert sum(step.mnemonic == rows.outer_product.mnemonic for step in predicted) == issued
    assert rows.warp_product.macs == 16 * -(-m_warp // m_inst) * -(-n_warp // n_inst) * m_inst * n_inst


def test_an_outer_product_of_another_shape_has_no_encoding():
    rows = outer_product_rows(4, 32)
    operands = (ACC, R(8), R(16), R(0), R(1), Immediate(0), Immediate(0), Immediate(0))
    step = Instruction("OHMMA.4321", operands, Predicate(0), rows.outer_product)
    with pytest.raises(IsaError, match=r"^OHMMA\.4321: must stand in a table to be encoded, not derived$"):
        encode(step)
