"""stcsim from Python: one product from numpy masks, or a study with all its points.

Stands above the packages; ``import stcsim`` offers its names and loads them when
they are first used, so that importing stcsim stays cheap.

>>> import numpy as np
>>> import stcsim
>>> rng = np.random.default_rng(0)
>>> op = stcsim.gemm(rng.random((64, 64)) < 0.3, rng.random((64, 64)) < 0.5)
>>> result = stcsim.simulate(op, machine="dstc-v100")
>>> result.check.ok, result.macs_total
(True, 262144)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from stcsim.catalog import load_pair
from stcsim.config.machine import Dtype
from stcsim.config.study import Adapt, Engine, Level, SparseSide
from stcsim.export import study_yaml
from stcsim.points import axis_override, expand
from stcsim.result.result import Result
from stcsim.result.store import Store, check_folder
from stcsim.result.sweep_results import SweepResults
from stcsim.run import Settings, run_gemm
from stcsim.sweep import Memory, plan, run
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import MaskPattern

__all__ = ["gemm", "run_study", "simulate"]


def gemm(
    a: ArrayLike, b: ArrayLike, *, name: str = "gemm", weight: Literal["a", "b"] = "a", seed: int = 0
) -> Gemm:
    """Return the product C[m,n] = A[m,k] B[k,n] of two operands of which only the zeros matter.

    Parameters
    ----------
    a : array_like, shape (m, k)
        Masks, or values of any numeric type: what is not zero counts.
    b : array_like, shape (k, n)
    name : str
        For people; a result never depends on it.
    weight : "a" or "b"
        Which operand is the weight: kernels get it on the side that their datapath wants sparse.
    seed : int
        Of the values that the check puts on the patterns.

    Returns
    -------
    gemm : Gemm

    Raises
    ------
    WorkloadError
        If an operand is not a matrix, or the shapes do not agree.
    """
    operands = []
    for stream, (side, mask) in enumerate((("a", a), ("b", b))):
        pattern = MaskPattern(np.asarray(mask) != 0)
        role: Literal["weight", "activation"] = "weight" if side == weight else "activation"
        operands.append(Operand(pattern, role, 2 * seed + stream, f"array {side}"))
    return Gemm(name, *operands)


def simulate(
    op: Gemm | tuple[ArrayLike, ArrayLike],
    machine: str,
    kernel: str | None = None,
    *,
    dtype: Dtype = "fp16",
    adapt: Adapt = "error",
    sparse_side: SparseSide = "weight",
    engine: Engine = "numba",
    check_tiles: int = 2,
    threads: int = 2,
    level: Level = "gpu",
    overrides: Sequence[str] = (),
) -> Result:
    """Simulate one product.

    Parameters
    ----------
    op : Gemm or pair of array_like
        From `gemm`, or simply (A, B).
    machine : str
        A shipped machine's name or a machine file.
    kernel : str, optional
        A shipped kernel's name or a kernel file; left out: the machine's first.
    dtype, adapt, sparse_side, engine, check_tiles
        As the keys of a study.
    threads : int
        Of the engine; the result does not depend on it.
    level : "gpu" or "sm"
        The whole chip, or its SMs alone.
    overrides : sequence of str
        ``machine.PATH=VALUE`` and ``kernel.PATH=VALUE``.

    Returns
    -------
    result : Result
        Cycles, time, utilisations, stalls, traffic.

    Raises
    ------
    StcsimError
        If a name is unknown, or operands, kernel and machine do not fit each other.
    """
    problem = op if isinstance(op, Gemm) else gemm(*op)
    machine_entry, kernel_entry = load_pair(machine, kernel, overrides=overrides)
    settings = Settings(dtype, adapt, sparse_side, engine, check_tiles, threads, level)
    return run_gemm(problem, machine_entry, kernel_entry, settings, seed=0)


def run_study(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    axes: Sequence[str] = (),
    jobs: int = 1,
    out: str | Path | None = None,
) -> SweepResults:
    """Run every point of a study.

    Parameters
    ----------
    path : str or Path
        The study's file.
    overrides : sequence of str
        ``PATH=VALUE``, as ``--set``.
    axes : sequence of str
        ``PATH=V1,V2``, as ``--axis``.
    jobs : int
        Worker processes.
    out : str or Path, optional
        Folder of the store.  With it every result is kept at once, and a call on the same folder goes on
        where an earlier one stopped.

    Returns
    -------
    results : SweepResults
        A row for each layer of each point, in the order of the study; ``to_frame()`` gives a pandas
        DataFrame.  Rows that failed have their error instead of a result.

    Raises
    ------
    StcsimError
        If the study is wrong, or the folder belongs to another one.

    Examples
    --------
    >>> results = run_study("study.yaml", axes=["kernel.stages=2,3"])  # doctest: +SKIP
    >>> results.to_frame().groupby("machine").speed_up.mean()  # doctest: +SKIP
    """
    folder = None if out is None else Path(out)
    if folder is not None:
        check_folder(folder, resume=True)
    settings = list(overrides)
    planned = plan(expand(path, [*settings, *axis_override(axes, path, settings)]), jobs)
    meta = planned.meta(study_yaml(planned.space.base))
    if folder is None:
        sink = Memory()
        run(planned, sink, jobs=jobs)
        return SweepResults.collect(meta, planned.runs, sink.kept)
    with Store.create(folder, planned.runs, meta, resume=True) as store:
        run(planned, store, jobs=jobs)
        return SweepResults.collect(store.meta(), store.plan(), store.outcomes())
