"""Resident CTAs, each limit in turn; numbers worked out by hand."""

from __future__ import annotations

import re

import pytest

from stcsim.catalog import load_kernel, load_machine
from stcsim.config.kernel import Kernel
from stcsim.config.machine import Machine
from stcsim.errors import LoweringError
from stcsim.machine.occupancy import resident_ctas


def pair(machine: str, kernel: str, *overrides: str) -> tuple[Machine, Kernel]:
    return load_machine(machine)[0].machine, load_kernel(kernel, overrides=overrides)[0].kernel


def test_registers_bound_the_a100_kernel() -> None:
    # 230 x 32 = 7360 -> 7424 registers a warp (units of 256), 4 warps: 29696; 65536 / 29696 = 2.
    # Shared memory: 4 stages x 256 x 32 x 2 B + 1 KiB = 66560 B; 167936 / 66560 = 2.
    assert resident_ctas(*pair("a100-sxm4-40gb", "hmma16816_128x128x32"), "fp16") == 2
    # 100 registers: 3328 a warp, 4 CTAs by registers; shared memory keeps it at 2.
    assert (
        resident_ctas(*pair("a100-sxm4-40gb", "hmma16816_128x128x32", "registers_per_thread=100"), "fp16")
        == 2
    )
    # and at 2 stages (33792 B) 4 fit by shared memory too.
    wide = pair("a100-sxm4-40gb", "hmma16816_128x128x32", "registers_per_thread=100", "stages=2")
    assert resident_ctas(*wide, "fp16") == 4


def test_accumulator_tiles_bound_the_dstc_kernel() -> None:
    # 16 warps a CTA, 4 tiles on each of 4 sub-cores: one CTA; 8 tiles: two.
    machine, kernel = pair("dstc-v100", "spwmma_128x128x32")
    assert resident_ctas(machine, kernel, "fp16", accumulator_tiles=4) == 1
    assert resident_ctas(machine, kernel, "fp16", accumulator_tiles=8) == 2


def test_a_cta_that_does_not_fit_is_refused_with_what_it_takes_and_what_there_is() -> None:
    machine, kernel = pair("dstc-v100", "spwmma_128x128x32")
    message = (
        "machine dstc-v100: must fit one CTA of kernel spwmma_128x128x32 on an SM, "
        "but it takes 16 of 12 accumulator tiles"
    )
    with pytest.raises(LoweringError, match=f"^{re.escape(message)}$"):
        resident_ctas(machine, kernel, "fp16", accumulator_tiles=3)


def test_all_that_a_cta_lacks_is_told_at_once() -> None:
    # 4 warps of 520 registers a thread: 16640 a warp; 12 stages of 256 x 32 x 2 B and 1 KiB.
    machine, kernel = pair("a100-sxm4-40gb", "hmma16816_128x128x32", "registers_per_thread=520", "stages=12")
    message = (
        "machine a100-sxm4-40gb: must fit one CTA of kernel hmma16816_128x128x32 on an SM, "
        "but it takes 66560 of 65536 registers, 197632 of 167936 bytes of shared memory"
    )
    with pytest.raises(LoweringError, match=f"^{re.escape(message)}$"):
        resident_ctas(machine, kernel, "fp16")


def test_a_cta_that_takes_the_whole_of_a_resource_fits() -> None:
    # 512 registers a thread: 4 x 16384 = 65536 of 65536.
    assert (
        resident_ctas(*pair("a100-sxm4-40gb", "hmma16816_128x128x32", "registers_per_thread=512"), "fp16")
        == 1
    )
