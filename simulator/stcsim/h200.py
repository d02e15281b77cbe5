"""The SM engine against measurements of an H200: instructions, register tiles, main loops, resident CTAs.

Stands above the packages; ``stcsim validate h200`` calls it with a folder of recorded data.  Each measurement is
set beside the model's prediction and beside a naive one, and says whether a constant was chosen looking at it.
What the measuring kernels add around their loops is part of the measurement and stands here.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from stcsim.catalog import load_machine, loop_document, loops
from stcsim.config.loop import Loop
from stcsim.config.machine import Machine
from stcsim.config.validation import validate
from stcsim.errors import ConfigError, Problem
from stcsim.lowering.warp_code import CodeOp, WarpCode
from stcsim.machine.kernels import sm as engine
from stcsim.machine.sm_binding import tensor_timing
from stcsim.machine.sm_listing import bind_listing
from stcsim.machine.sm_record import NONE, Column, Kind, SmMachine, SmModel
from stcsim.machine.sm_schedule import schedule

MACHINE = "h200-mma-sync"


@dataclass(frozen=True)
class Row:
    """One measurement.

    Parameters
    ----------
    what : str
        Instruction, tile or loop.
    case : str
        Warps and independent sums; variant of a loop; resident CTAs.
    measured, predicted, naive : float, unit cycle
    calibrated : bool
        Whether a constant or rule was chosen looking at it.
    """

    what: str
    case: str
    measured: float
    predicted: float
    naive: float
    calibrated: bool

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1

    @property
    def naive_error(self) -> float:
        """Relative error of the naive prediction."""
        return self.naive / self.measured - 1


def _read(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise ConfigError(Problem(f"must be a file that can be read ({error.strerror})", str(path))) from None


@cache
def machine() -> Machine:
    """Return the machine that the data were measured on."""
    return load_machine(MACHINE)[0].machine


@cache
def load_loop(name: str) -> Loop:
    """Read a measured main loop, by its shipped name or as a file (a name with a slash or .yaml).

    Raises
    ------
    ConfigError
        If there is no such loop, or its file is faulty.
    """
    return validate(Loop, loop_document(name))


# -- instructions ---------------------------------------------------------------------------------------

INSTRUCTIONS = {
    "f16_f32_k8": "HMMA.1688.F32", "f16_f16_k8": "HMMA.1688.F16", "bf16_f32_k8": "HMMA.1688.F32.BF16",
    "tf32_f32_k4": "HMMA.1684.F32.TF32", "s8_s32_k16": "IMMA.16816.S8", "f16_f32_k16": "HMMA.16816.F32",
    "f16_f16_k16": "HMMA.16816.F16", "bf16_f32_k16": "HMMA.16816.F32.BF16", "tf32_f32_k8": "HMMA.1688.F32.TF32",
    "s8_s32_k32": "IMMA.16832.S8", "b1_and_s32_k256": "BMMA.168256.AND", "sp_f16_f32_k16": "HMMA.SP.16816.F32",
    "sp_s8_s32_k32": "IMMA.SP.16832.S8", "sp_f16_f32_k32": "HMMA.SP.16832.F32",
    "sp_f16_f16_k32": "HMMA.SP.16832.F16", "sp_bf16_f32_k32": "HMMA.SP.16832.F32.BF16",
    "sp_tf32_f32_k16": "HMMA.SP.16816.F32.TF32", "sp_s8_s32_k64": "IMMA.SP.16864.S8",
    "spplain_f16_f32_k32": "HMMA.SP.16832.F32", "spplain_s8_s32_k64": "IMMA.SP.16864.S8",
}  # fmt: skip
"""Mnemonics of the operations of mma_instr.csv."""

UNROLL = 16
"""Rounds over the sums in one iteration of the measuring loop (data/h200/README.md)."""
AROUND_CYCLES = 150
"""Cycles between the two clock reads beside the loop: calibrated on one-warp rows of mma_instr.csv."""
CONVERSION_CYCLES = 24
"""Before the second clock read ptxas put three conversions to fp64 for each sum of 32 bits: 8 cycles each and warp
of a sub-core (the compiled kernel; alu_throughput.csv, 4 lanes)."""


def chain(mnemonic: str, ilp: int, rounds: int, iterations: int) -> WarpCode:
    """Return the code of `ilp` independent chains of an instruction, with the loop's counter."""
    body = [
        CodeOp(mnemonic, writes=(100 + i,), reads=(100 + i, 1, 2)) for _ in range(rounds) for i in range(ilp)
    ]
    body.insert(1, CodeOp("UIADD3"))
    body.insert(3, CodeOp("ISETP"))
    return WarpCode((), tuple(body), (), iterations)


@cache
def _chain_cycles(mnemonic: str, ilp: int, warps: int, iterations: int) -> int:
    code = chain(mnemonic, ilp, UNROLL, iterations)
    model = schedule(code, machine(), warps_per_cta=warps, resident_ctas=1)
    return engine.simulate(model, np.array([1]))[0].cycles


def instruction_rows(path: Path) -> Iterator[Row]:
    """Predict the rows of mma_instr.csv: cycles per instruction and warp."""
    for item in _read(path):
        mnemonic, ilp, warps = INSTRUCTIONS[item["op"]], int(item["ilp"]), int(item["warps_per_sm"])
        n = int(item["mma_per_warp"])
        timing = tensor_timing(machine(), mnemonic)
        per_sub_core = max(1.0, warps / machine().sub_cores_per_sm)
        conversions = 0 if "f16_f16" in item["op"] else CONVERSION_CYCLES * ilp * per_sub_core
        cycles = _chain_cycles(mnemonic, ilp, warps, n // UNROLL // ilp)
        yield Row(
            what=item["op"],
            case=f"{warps} warps, ILP {ilp}",
            measured=float(item["cycles_per_mma_per_warp_median"]),
            predicted=(cycles + AROUND_CYCLES + conversions) / n,
            naive=max(timing.interval_cycles * per_sub_core, timing.latency_cycles / ilp),
            calibrated=ilp == 1 and warps == 1,
        )


# -- register tiles -------------------------------------------------------------------------------------

AROUND_TILE_CYCLES = 4.5
"""Cycles for each product of a tile beside the loop: sums are set to zero before and reduced after it (regtile.cu)."""
TILE_ITERATIONS = 200
"""Iterations of the measuring loop, two k-steps each (data/h200/src/regtile.cu)."""


def register_tile(mnemonic: str, rows: int, columns: int, *, loads: bool, columns_per_load: int) -> WarpCode:
    """Return the code of regtile.cu: two k-steps on fragments of their own, the loads of the next one interleaved."""

    def fragments(step: int) -> list[CodeOp]:
        a = [
            CodeOp("LDSM.X4", writes=(1000 + 100 * step + i,), wavefronts=4, batch=step) for i in range(rows)
        ]
        b = [
            CodeOp(
                "LDSM.X4", writes=tuple(2000 + 100 * step + j + n for n in range(columns_per_load)), wavefronts=4,
                batch=step,
            )
            for j in range(0, columns, columns_per_load)
        ]  # fmt: skip
        return [*a, *b]

    body: list[CodeOp] = []
    for step in (0, 1):
        waiting = fragments(1 - step) if loads else []
        for i in range(rows):
            for j in range(columns):
                read = step if loads else 0
                reads = (100 * i + j, 1000 + 100 * read + i, 2000 + 100 * read + j)
                body.append(CodeOp(mnemonic, writes=(100 * i + j,), reads=reads))
                if waiting:
                    body.append(waiting.pop(0))
    return WarpCode(tuple(fragments(0)), tuple(body), (), TILE_ITERATIONS)


def tile_rows(path: Path) -> Iterator[Row]:
    """Predict mma_register_tile.csv: cycles per instruction and warp."""
    for item in _read(path):
        mnemonic = INSTRUCTIONS[item["op"]]
        m, n, warps = int(item["warp_tile_m"]), int(item["warp_tile_n"]), int(item["warps_per_sm"])
        loads = item["with_ldmatrix"] == "1"
        together = 1 if item["op"].startswith("sp_") else 2
        code = register_tile(mnemonic, m // 16, n // 8, loads=loads, columns_per_load=together)
        model = schedule(code, machine(), warps_per_cta=warps, resident_ctas=1)
        products = 2 * (m // 16) * (n // 8)
        (run,) = engine.simulate(model, np.array([1]))
        per_sub_core = max(1.0, warps / machine().sub_cores_per_sm)
        yield Row(
            what=item["op"],
            case=f"{m} x {n}, {warps} warps{', ldmatrix' if loads else ''}",
            measured=float(item["cycles_per_mma_per_warp_median"]),
            predicted=run.cycles / TILE_ITERATIONS / products + AROUND_TILE_CYCLES / TILE_ITERATIONS,
            naive=tensor_timing(machine(), mnemonic).interval_cycles * per_sub_core,
            calibrated=loads and item["op"] == "sp_f16_f32_k32" and (m, n) == (64, 64),
        )


# -- main loops -----------------------------------------------------------------------------------------

SEEN_VARIANTS = ("onlyHMMA", "onlyHMMA_ALU", "noHMMA_noLDSM", "noHMMA_noLDGSTS_noLDSM_noSYNC")
"""Variants of all loops that were looked at to find rules."""
SEEN_LOOP = "f16_128x128x32_w64x64_s4"
"""The loop whose variants the slot gap and the tag stage were calibrated on."""


def _kinds(model: SmModel, *kinds: Kind) -> np.ndarray:
    return np.isin(model.program[:, Column.KIND], kinds)


def _nop(model: SmModel, which: np.ndarray) -> None:
    """Make instructions NOPs that keep their stall counts and waits, as the patched kernels did."""
    model.program[which, Column.KIND] = Kind.ISSUE_ONLY
    for column in (Column.WRITE_BARRIER, Column.READ_BARRIER, Column.PIPE):
        model.program[which, column] = NONE


def variant(loop: Loop, name: str, iterations: int) -> SmModel | None:
    """Return a loop patched as in gemm_patched_variants.csv, or None for one that is none of ours."""
    model = bind_listing(loop, machine(), iterations=iterations, resident_ctas=1)
    program, ops = model.program, loop.ops()
    control = np.array([op.role == "loop" for op in ops])
    if name.startswith("clrWait_pos"):
        program[int(name.split("_")[1].removeprefix("pos")), Column.WAIT_MASK] = 0
        return model
    if name.startswith("onlyHMMA"):
        kept = _kinds(model, Kind.MMA, Kind.BRANCH, Kind.ISSUE_ONLY) | control
        _nop(model, ~(kept | _kinds(model, Kind.INTEGER)) if "ALU" in name else ~kept)
        if "noWait" in name:
            program[:, Column.WAIT_MASK] = 0
        return model
    if name.startswith("hoist3"):
        _hoist(model, [at for at, op in enumerate(ops) if op.role == "off"])
        if name.endswith("noBAR"):
            _nop(model, _kinds(model, Kind.BARRIER))
        return model
    mma, groups = _kinds(model, Kind.MMA), _kinds(model, Kind.WAIT_GROUPS, Kind.COMMIT)
    removed = {
        "noLDGSTS": _kinds(model, Kind.COPY), "LDGSTSpredOff": _kinds(model, Kind.COPY),
        "noLDSM": _kinds(model, Kind.LOAD), "noBAR": _kinds(model, Kind.BARRIER), "noDEPBAR": groups,
        "noSYNC": groups | _kinds(model, Kind.BARRIER), "noHMMA": mma,
        "noALU": _kinds(model, Kind.INTEGER) & ~control,
    }  # fmt: skip
    waitless = {"noWaitHMMA": mma, "noWaitNonHMMA": ~mma, "noWaitAll": mma | ~mma}
    for part in name.split("_"):
        if part in removed:
            _nop(model, removed[part])
        elif part in waitless:
            program[waitless[part], Column.WAIT_MASK] = 0
        elif part == "LDGSTSnoRB":
            program[_kinds(model, Kind.COPY), Column.READ_BARRIER] = NONE
        elif part not in ("base", "noReuse", "noDummyLDS", "braStall5"):
            return None
    return model


def _hoist(model: SmModel, to: Sequence[int]) -> None:
    """Move the third to fifth load into the slots of the predicated-off ones (our reading of hoist3)."""
    moved = [Column.KIND, Column.WRITE_BARRIER, Column.READ_BARRIER, Column.PORT, Column.SLOTS]
    sources = np.flatnonzero(_kinds(model, Kind.LOAD))[2:5]
    for source, target in zip(sources, to, strict=True):
        model.program[target, moved] = model.program[source, moved]
        _nop(model, np.arange(len(model.program)) == source)


def per_iteration(model: SmModel) -> float:
    """Return the steady cycles of an iteration, the mean over the resident CTAs.

    Measured between two iterations of the same CTA, after the first and before the last ones, when some
    CTAs may have ended.
    """
    iterations = model.iterations
    first, last = iterations // 4, iterations * 2 // 3
    (run,) = engine.simulate(model, np.array([model.resident_ctas]), n_starts=last + 1)
    starts = run.starts.reshape(model.resident_ctas, model.warps_per_cta, -1).max(axis=1)
    return float(np.mean((starts[:, last] - starts[:, first]) / (last - first)))


def naive_machine(machine: SmMachine) -> SmMachine:
    """Return an SM with in-order warps, stall counts and an MMA pipe, and memory that is only latency."""
    return machine.but(
        integer_delay_period=0, queue_depth=64, queue_latency=1, slot_gap=1, slot_gap_fed=1, requests=64,
        return_gap=0, load_latency=machine.load_latency + machine.queue_latency + machine.slot_gap + 8,
        copy_to_tags=0, tag_queue=64, barrier_base=1, barrier_per_warp=0,
    )  # fmt: skip


def naive_model(model: SmModel) -> SmModel:
    """Return a model for the naive in-order prediction: no operand slots, no port but its one cycle."""
    program = model.program.copy()
    program[:, Column.SLOT_COST] = 0
    program[:, Column.SLOTS] = 1
    program[:, Column.PORT] = 1
    return SmModel(
        program, model.mnemonics, naive_machine(model.machine), model.iterations, model.warps_per_cta,
        model.resident_ctas,
    )  # fmt: skip


def loop_rows(path: Path) -> Iterator[Row]:
    """Predict the rows of gemm_patched_variants.csv with one CTA on one SM: cycles per iteration."""
    for item in _read(path):
        name, value = item["config"], item["cycles_per_kiter_median"]
        if item["ctas_one_per_sm"] != "1" or name not in loops() or not value.replace(".", "", 1).isdecimal():
            continue
        model = variant(load_loop(name), item["variant"], 60)
        if model is None:
            continue
        yield Row(
            what=name,
            case=item["variant"],
            measured=float(value),
            predicted=per_iteration(model),
            naive=per_iteration(naive_model(model)),
            calibrated=item["variant"] in SEEN_VARIANTS or name == SEEN_LOOP,
        )


def resident_rows(path: Path) -> Iterator[Row]:
    """Predict gemm_mma_sync_phases.csv, schedule lean: cycles per iteration, one CTA an SM and all that fit."""
    alone, together = defaultdict(list), defaultdict(list)
    for item in _read(path):
        name = item["config"].removesuffix("_lean")
        if item["schedule"] != "lean" or name not in loops() or int(item["k_iters"]) < 16:
            continue
        resident = load_loop(name).resident_ctas
        n, value = int(item["ctas_recorded"]), float(item["mainloop_cycles_per_kiter_median"])
        if n <= machine().sms:
            alone[name].append(value)
        elif n >= 2 * machine().sms * resident and int(item["k_iters"]) >= 64:
            together[name].append(value)
    for name in sorted(alone):
        loop = load_loop(name)
        for resident, values, full in (
            (1, alone[name], ""),
            (loop.resident_ctas, together[name], ", SM full"),
        ):
            if values:
                model = bind_listing(loop, machine(), iterations=60, resident_ctas=resident)
                yield Row(
                    what=name,
                    case=f"{resident} CTAs an SM, {len(values)} shapes{full}",
                    measured=median(values),
                    predicted=per_iteration(model),
                    naive=per_iteration(naive_model(model)),
                    calibrated=name == SEEN_LOOP,
                )


# -- summaries ------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[str, str, Callable[[Path], Iterable[Row]]]] = {
    "instr": ("mma_instr.csv", "cycles per instruction and warp, 1 to 16 warps, ILP 1 to 6", instruction_rows),
    "tiles": ("mma_register_tile.csv", "register tiles with and without matrix loads", tile_rows),
    "loops": ("mainloop/gemm_patched_variants.csv", "main loops and their patched variants, one CTA", loop_rows),
    "resident": ("gemm_mma_sync_phases.csv", "main loops in whole kernels, one CTA an SM and full", resident_rows),
}  # fmt: skip
"""Parts of the validation: file below the data folder, title, prediction."""


@dataclass(frozen=True)
class Summary:
    """Errors of several rows, as fractions."""

    n: int
    mean: float
    largest: float
    naive_mean: float
    naive_largest: float


def summarize(rows: Sequence[Row]) -> Summary:
    """Return mean and largest absolute errors of the rows (zeros for none)."""
    if not rows:
        return Summary(0, 0.0, 0.0, 0.0, 0.0)
    errors = np.abs([[row.error, row.naive_error] for row in rows])
    mean, largest = errors.mean(axis=0).tolist(), errors.max(axis=0).tolist()
    return Summary(len(rows), mean[0], largest[0], mean[1], largest[1])


def deltas(rows: Sequence[Row], threshold: float = 10.0) -> tuple[int, int, float, float]:
    """Compare what a patch changes, against the unpatched loop.

    Parameters
    ----------
    rows : sequence of Row
        Of `loop_rows`.
    threshold : float, unit cycle
        Smaller measured changes do not count for the sign.

    Returns
    -------
    right, counted : int
        Changes of the right sign, of those above the threshold.
    mean_error : float, unit cycle
    correlation : float
        Of measured and predicted changes, all of them.
    """
    base = {row.what: row for row in rows if row.case == "base"}
    pairs = np.array(
        [
            (row.measured - base[row.what].measured, row.predicted - base[row.what].predicted)
            for row in rows
            if row.case != "base" and row.what in base
        ]
    ).reshape(-1, 2)
    big = pairs[np.abs(pairs[:, 0]) > threshold]
    right = int((np.sign(big[:, 0]) == np.sign(big[:, 1])).sum())
    error = float(np.abs(pairs[:, 0] - pairs[:, 1]).mean())
    return right, len(big), error, float(np.corrcoef(pairs.T)[0, 1])
