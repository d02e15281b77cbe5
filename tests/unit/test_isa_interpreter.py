"""Programs run on values: data directives, branches, traces, reports, and what stops a run."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa.assembler import assemble
from stcsim.isa.inspection import report
from stcsim.isa.interpreter import run
from stcsim.isa.loading import initial_state


def lines(text: str) -> tuple[list[str], list[str]]:
    """Return the trace and the report of a program."""
    program = assemble(text)
    state, trace = initial_state(program), []
    run(program, state, lambda step: trace.append(" ".join(str(step).split())))
    return trace, list(report(program, initial_state(program), state))


def test_a_loop_runs_until_its_guard_fails():
    trace, printed = lines(
        "MOV R0, 2\nloop: IADD3 R0, R0, -1, RZ\nISETP.GT.AND P0, R0, 0, PT\n@P0 BRA loop\nMOV R1, 7"
    )
    assert trace == [
        "0 MOV R0, 2 R0 = 0x2 in all lanes",
        "1 IADD3 R0, R0, 0xffffffff, RZ R0 = 0x1 in all lanes",
        "2 ISETP.GT.AND P0, R0, 0, PT P0 = 0xffffffff",
        "3 @P0 BRA L1 goes on at 1",
        "1 IADD3 R0, R0, 0xffffffff, RZ R0 = 0x0 in all lanes",
        "2 ISETP.GT.AND P0, R0, 0, PT P0 = 0x00000000",
        "3 @P0 BRA L1 skipped",
        "4 MOV R1, 7 R1 = 0x7 in all lanes",
    ]
    assert printed == ["R1    00000007 in all lanes"]


def test_exit_ends_a_program_before_its_last_instruction():
    assert lines("EXIT\nMOV R1, 1") == (["0 EXIT no change"], [])


def test_a_program_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stcsim.isa.interpreter.STEP_LIMIT", 100)
    with pytest.raises(IsaError, match=r"^program must end within 100 instructions, not running still$"):
        lines("loop: BRA loop")


def test_a_fault_of_a_run_names_the_instruction():
    with pytest.raises(
        IsaError, match=r"^instruction 1: LDS R4, \[0xc000\]: lane 0: shared address must be a multiple"
    ):
        lines("NOP\nLDS R4, [0xC000]")
    with pytest.raises(
        IsaError, match=r"^instruction 0: ACC\.CLEAR ACC9: accumulator must be below ACC4, not ACC9$"
    ):
        lines("ACC.CLEAR ACC9")


def test_directives_fill_registers_and_memories():
    program = assemble(
        """
        .shared 64
        .global 32
        .register R3 = 0x10
        .register R4 = 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 -1
        .matrix A int8 2x4 = [1 0 3 4; 0 6 0 8]
        .place A shared[0] rows
        .place A shared[8] columns
        .place A shared[16] packed_rows
        .place A shared[24] packed_columns
        .place A shared[32] bits_rows
        .place A shared[40] bits_columns
        .place A global[4] rows
        .place A R5 rows
        """
    )
    state = initial_state(program)
    assert state.shared.size == 64
    assert state.shared[:32].tolist() == [
        *[1, 0, 3, 4, 0, 6, 0, 8],
        *[1, 0, 0, 6, 3, 0, 4, 8],
        *[1, 3, 4, 6, 8, 0, 0, 0],
        *[1, 6, 3, 4, 8, 0, 0, 0],
    ]
    assert state.shared.view("<u4")[8:14].tolist() == [0b1101, 0b1010, 0b01, 0b10, 0b01, 0b11]
    assert state.memory[:12].tolist() == [0, 0, 0, 0, 1, 0, 3, 4, 0, 6, 0, 8]
    assert state.registers[3].tolist() == [16] * 32
    assert state.registers[4].tolist() == [*range(31), 0xFFFFFFFF]
    assert state.registers[5, :3].tolist() == [0x04030001, 0x08000600, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".place A R4 rows", ".place A R4 rows: must place a matrix given before, not A"),
        (
            ".shared 16\n.matrix A fp32 1x5 = [1 2 3 4 5]\n.place A shared[0] rows",
            ".place A shared[0x0] rows: 20 bytes must end within shared memory of 16, not begin at 0x0",
        ),
        (
            ".matrix A fp32 1x33 = integers(1, 1, 100, 0)\n.place A R254 rows",
            ".place A R254 rows: 2 registers must end below R255, not begin at R254",
        ),
        (
            ".matrix A fp16 33x1 = integers(1, 1, 100, 0)\n.place A R4 bits_columns",
            ".place A R4 bits_columns: a bitmap word must stand for at most 32 elements, not 33",
        ),
        (
            ".matrix A int8 16x16 = identity()\n.place A R4 a HMMA.16816.F32",
            ".place A R4 a HMMA.16816.F32: matrix must be of fp16, not int8",
        ),
        (
            ".matrix A fp16 16x8 = identity()\n.place A R4 a HMMA.16816.F32",
            ".place A R4 a HMMA.16816.F32: tile must be 16 x 16, not 16 x 8",
        ),
        (
            ".matrix A int8 1x1 = [0.5]\n.place A R4 rows",
            ".place A R4 rows: int8 element must be a whole number from -128 to 127, not 0.5",
        ),
        (
            ".matrix A fp16 1x1 = [1]\n.place A R4 a POPC",
            ".place A R4 a POPC: instruction must multiply register fragments, not POPC",
        ),
        (
            ".matrix A fp16 16x16 = identity()\n.place A R4 e HMMA.16816.F32",
            ".place A R4 e HMMA.16816.F32: instruction must take 2:4 metadata, not HMMA.16816.F32",
        ),
        (
            ".matrix A fp16 1x1 = [1]\n.place A R4 a HMM",
            ".place A R4 a HMM: instruction must be one of the tables', not HMM",
        ),
    ],
)
def test_data_that_do_not_fit_are_told(text: str, message: str):
    with pytest.raises(IsaError) as caught:
        initial_state(assemble(text))
    assert str(caught.value).startswith(message)


def test_a_report_shows_matrices_then_what_else_changed():
    _, printed = lines(
        """
        .shared 256
        .show D ACC1 2x2
        .matrix A fp16 1x64 = integers(1, 1, 100, 0)
        .place A R8 rows
            S2R R0, SR_LANEID
            SHL R1, R0, 2
            MOV R2, 1
            ISETP.GT.AND P2, R0, 27, PT
            STS [R1], R0
            MOV R12, 3
            OHMMA.8161 ACC1, R8, R8, R12, R12, 0, 0, 0
            OHMMA.8161 ACC0, R8, R8, R12, R12, 1, 0, 0
        """
    )
    assert printed == [
        "D (2 x 2, ACC1 2x2)",
        "  1 1",
        "  1 1",
        "R0    00000000 00000001 00000002 00000003 00000004 00000005 00000006 00000007",
        "      00000008 00000009 0000000a 0000000b 0000000c 0000000d 0000000e 0000000f",
        "      00000010 00000011 00000012 00000013 00000014 00000015 00000016 00000017",
        "      00000018 00000019 0000001a 0000001b 0000001c 0000001d 0000001e 0000001f",
        "R1    00000000 00000004 00000008 0000000c 00000010 00000014 00000018 0000001c",
        "      00000020 00000024 00000028 0000002c 00000030 00000034 00000038 0000003c",
        "      00000040 00000044 00000048 0000004c 00000050 00000054 00000058 0000005c",
        "      00000060 00000064 00000068 0000006c 00000070 00000074 00000078 0000007c",
        "R2    00000001 in all lanes",
        "R12   00000003 in all lanes",
        "P2    0xf0000000",
        "ACC0 (rows 0..1, columns 0..1; the rest unchanged)",
        "  1 1",
        "  1 1",
        "shared: 31 bytes changed, from 0x4 to 0x7c",
    ]


def test_a_show_of_what_does_not_exist_is_an_error():
    program = assemble(".show D ACC7 16x16")
    with pytest.raises(
        IsaError, match=r"^\.show D ACC7 16x16: must be within 4 tiles of 32 x 32, not 16x16 of ACC7$"
    ):
        list(report(program, initial_state(program), initial_state(program)))


def test_a_trace_draws_runs_of_rows_and_registers_together():
    trace, _ = lines(
        """
        .matrix A fp16 8x32 = integers(1, 1, 100, 0)
        .place A R8 rows
        .register R0 = 0xF5
            OHMMA.8161 ACC0, R8, R8, R0, R0, 0, 0, 0
            ACC.DRAIN R16, ACC0, 0
        """
    )
    assert trace == [
        "0 OHMMA.8161 ACC0, R8, R8, R0, R0, 0, 0, 0 ACC0: 36 sums, rows 0 2 4-7, columns 0 2 4-7",
        "1 ACC.DRAIN R16, ACC0, 0 R16 to R23",
    ]


def test_values_are_loaded_once_for_each_state():
    program = assemble(".register R4 = 1\nMOV R4, 2")
    state = initial_state(program)
    run(program, state)
    assert (initial_state(program).registers[4] == 1).all()
    assert (np.asarray(state.registers[4]) == 2).all()
