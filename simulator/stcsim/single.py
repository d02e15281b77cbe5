"""One GEMM from loose arguments, as ``stcsim sim gemm`` gives them.

Stands above the packages, beside `stcsim.study`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from stcsim.catalog import KernelEntry, MachineEntry, load_pair
from stcsim.config.machine import Dtype
from stcsim.errors import ConfigError, Problem, StcsimError, must
from stcsim.lowering import LOWERINGS
from stcsim.result.result import Result
from stcsim.run import Settings, require_compatible, run_gemm, try_kernels
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Dense, Uniform, generate
from stcsim.workload.operand import Operand, Role
from stcsim.workload.pattern import Pattern
from stcsim.workload.pattern_file import load_pattern


@dataclass(frozen=True)
class Single:
    """One GEMM ready to run: operands, machine, kernel and how."""

    gemm: Gemm
    machine: MachineEntry
    kernel: KernelEntry
    settings: Settings
    seed: int

    @property
    def label(self) -> str:
        """The problem, machine and kernel in words."""
        gemm = self.gemm
        return f"{gemm.m} x {gemm.n} x {gemm.k} on {self.machine.machine.name} with {self.kernel.kernel.name}"

    def run(self) -> Result:
        """Simulate it; errors as `stcsim.run.run_gemm`."""
        return run_gemm(self.gemm, self.machine, self.kernel, self.settings, seed=self.seed)

    def kernels(self) -> list[dict[str, Any]]:
        """Time every kernel that the machine lists, the fastest first: name, time or None, why it was not run."""
        clock_hz = self.machine.machine.clock
        tried = try_kernels(self.gemm, self.machine, self.settings, every=True)
        return [
            {
                "kernel": one.kernel.kernel.name,
                "time_us": one.seconds(clock_hz) * 1e6 if one.timing else None,
                "reason": one.reason,
            }
            for one in tried
        ]

    def timeline(self, count: int) -> list[str]:
        """Return the first outer products, one a line; errors as `stcsim.outer_timeline.timeline`."""
        from stcsim.outer_timeline import timeline  # loads the reference engine

        machine, kernel = self.machine.machine, self.kernel.kernel
        require_compatible(machine, kernel, self.settings.dtype)
        lowered = LOWERINGS[kernel.lowering].lower(self.gemm, kernel, self.settings.dtype, machine)
        return timeline(lowered, machine, count)


def prepare(
    *,
    m: int | None,
    n: int | None,
    k: int | None,
    density_a: float | None,
    density_b: float | None,
    file_a: Path | None,
    file_b: Path | None,
    key_a: str | None,
    key_b: str | None,
    machine: str,
    kernel: str | None,
    dtype: str,
    seed: int,
    sparse_side: str,
    adapt: Any,
    engine: Any,
    check_tiles: int,
    threads: int,
    level: Any,
    overrides: Sequence[str],
) -> Single:
    """Read everything that one GEMM needs; A counts as the weight, B as the activation.

    Parameters
    ----------
    m, n, k : int or None
        Sizes; those that a file fixes may be left out.
    density_a, density_b : float or None
        Of uniform random patterns; None: dense, or the file.
    file_a, file_b, key_a, key_b
        Pattern files.
    machine, kernel, dtype, seed, sparse_side, adapt, engine, check_tiles, threads, level, overrides
        As the options of ``stcsim sim gemm``.

    Raises
    ------
    StcsimError
        With every problem of the arguments.
    """
    problems: list[Problem] = []
    for name, density in (("--density-a", density_a), ("--density-b", density_b)):
        if density is not None and not (math.isfinite(density) and 0 <= density <= 1):
            problems.append(Problem(must("must be a fraction from 0 to 1", density), path=name))
    for side, path, density, key in (("a", file_a, density_a, key_a), ("b", file_b, density_b, key_b)):
        if path is not None and density is not None:
            problems.append(Problem(f"must not be given together with --density-{side}", path=f"--{side}"))
        if path is None and key is not None:
            problems.append(Problem(f"must come with --{side} FILE", path=f"--key-{side}"))
    if dtype not in get_args(Dtype):
        problems.append(
            Problem(
                must(f"must be one of {', '.join(get_args(Dtype))}", dtype, near=get_args(Dtype)),
                path="--dtype",
            )
        )
    loaded: list[Pattern | None] = []
    for path, key in ((file_a, key_a), (file_b, key_b)):
        try:
            loaded.append(load_pattern(path, key) if path is not None else None)
        except StcsimError as error:
            problems += error.problems
            loaded.append(None)
    if problems:
        raise ConfigError(problems)
    rows, columns, inner = _sizes(m, n, k, loaded[0], loaded[1], file_a, file_b)
    machine_entry, kernel_entry = load_pair(machine, kernel, overrides=overrides, option="--")
    operands = []
    roles: tuple[Role, Role] = ("weight", "activation")
    for stream, role in enumerate(roles):
        pattern, density = loaded[stream], (density_a, density_b)[stream]
        source = str((file_a, file_b)[stream])
        if pattern is None:
            shape = (rows, inner) if stream == 0 else (inner, columns)
            options = Dense() if density is None else Uniform(density=density)
            pattern, source = generate(options, shape, seed=seed, stream=stream), str(options)
        operands.append(Operand(pattern, role, 2 * seed + stream, source))
    settings = Settings(
        dtype=dtype,  # type: ignore[arg-type]  # checked above
        adapt=adapt,
        sparse_side="as_given" if sparse_side == "as-given" else sparse_side,  # type: ignore[arg-type]  # click's choice
        engine=engine,
        check_tiles=check_tiles,
        threads=threads,
        level=level,
    )
    return Single(Gemm("gemm", *operands), machine_entry, kernel_entry, settings, seed)


def _sizes(
    m: int | None,
    n: int | None,
    k: int | None,
    a: Pattern | None,
    b: Pattern | None,
    file_a: Path | None,
    file_b: Path | None,
) -> tuple[int, int, int]:
    """Join the sizes given as options with those that files fix."""
    claims: dict[str, list[tuple[str, int]]] = {"m": [], "n": [], "k": []}
    for axis, value in (("m", m), ("n", n), ("k", k)):
        if value is not None:
            claims[axis].append((f"--{axis}", value))
    if a is not None:
        claims["m"].append((f"{file_a} rows", a.shape[0]))
        claims["k"].append((f"{file_a} columns", a.shape[1]))
    if b is not None:
        claims["k"].append((f"{file_b} rows", b.shape[0]))
        claims["n"].append((f"{file_b} columns", b.shape[1]))
    problems = []
    for axis, found in claims.items():
        if not found:
            problems.append(Problem("must be given, or come from a file", path=f"--{axis}"))
        elif len({value for _, value in found}) > 1:
            problems.append(
                Problem(
                    "must be the same everywhere, not "
                    + ", ".join(f"{value} ({who})" for who, value in found),
                    path=f"--{axis}",
                )
            )
    if problems:
        raise ConfigError(problems)
    return claims["m"][0][1], claims["n"][0][1], claims["k"][0][1]
