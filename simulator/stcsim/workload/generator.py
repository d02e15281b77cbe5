"""Generators of operand patterns: dense, uniform, nm, block, clustered; and those of convolutions.

A study names a generator and gives its options; `generate` returns the pattern.
Generators know shapes and seeds, and (for n:m) which axis is K; nothing of
layers' names, formats or machines.

Seeds: a pattern depends on its options, its shape, the seed and the stream number,
on nothing else, and never on a name.  Draws are taken from the raw stream of
numpy's PCG64, which numpy promises not to change; so a seed means the same
pattern under every version of numpy.

Densities are met exactly: `uniform` and `clustered` hold round(density * size)
ones, not a binomial number of them, because what is studied is a matrix pruned to
a given level; for `uniform` all such masks are equally likely.

>>> pattern = generate(Uniform(density=0.25), (64, 32), seed=1)
>>> pattern.nnz
512
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from stcsim.config.document import Document
from stcsim.config.validation import FieldError, validate
from stcsim.errors import Problem, WorkloadError, must, unknown
from stcsim.workload.conv_generator import FeatureMap, Filters
from stcsim.workload.generation import (
    Count,
    GeneratorOptions,
    RandomStream,
    Spread,
    WithDensity,
    density_factors,
    scale_to_density,
)
from stcsim.workload.pattern import BoolArray, DensePattern, MaskPattern, Pattern, check_shape

_CHUNK_ELEMENTS = 1 << 22
"""Elements drawn at a time: bounds temporary memory to about 64 MiB."""


class Dense(GeneratorOptions):
    """No zeros at all."""

    name: ClassVar[str] = "dense"

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Return the dense pattern; draws nothing."""
        return DensePattern(shape)


class Uniform(WithDensity):
    """Exactly round(density * size) ones at positions drawn without replacement."""

    name: ClassVar[str] = "uniform"

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Draw each element alone, then mend the count at positions drawn uniformly.

        Notes
        -----
        Given its count, a mask of independent elements is uniform over all masks of that count, and
        clearing (or setting) uniformly chosen ones (zeros) keeps it so.
        """
        mask = np.empty(shape, dtype=np.bool_)
        for chunk in _row_chunks(mask):
            chunk[...] = _below(random, chunk.shape, self.density)
        return _settle(mask, self.density, random)


class Nm(GeneratorOptions):
    """n ones at random places of every m consecutive elements along K (2:4 and its kin)."""

    name: ClassVar[str] = "nm"
    n: Count = Field(default=2, description="Ones kept in each group.")
    m: Count = Field(default=4, description="Elements of a group, consecutive along K.")

    @model_validator(mode="after")
    def _fits(self) -> Nm:
        if self.n > self.m:
            raise FieldError(Problem(must(f"must be at most m ({self.m})", self.n), path="n"))
        return self

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Fill every group along `k_axis`; a last group of w < m elements gets min(n, w) ones.

        Notes
        -----
        The last group holds what pruning by magnitude would leave in it: padding is zero and never
        among the n largest.  Selection goes element by element: the next one is taken with probability
        (still wanted) / (still to come), which makes all choices of n among m equally likely.
        """
        by_k = np.empty((shape[k_axis], shape[1 - k_axis]), dtype=np.bool_)
        for k0 in range(0, len(by_k), self.m):
            group = by_k[k0 : k0 + self.m]
            wanted = np.full(group.shape[1], min(self.n, len(group)), dtype=np.uint64)
            for i, row in enumerate(group):
                draws = random.words(row.size).astype(np.uint64) * np.uint64(len(group) - i)
                np.less(draws, wanted << np.uint64(32), out=row)
                wanted -= row
        return MaskPattern.adopt(by_k if k_axis == 0 else np.ascontiguousarray(by_k.T))


class Block(WithDensity):
    """Blocks of rows x cols elements, each all ones or all zeros.

    `density` is the share of blocks, met exactly: round(density * blocks).  Blocks cut off by the
    edge count as whole ones, so that the share of elements can differ a little on ragged shapes.
    """

    name: ClassVar[str] = "block"
    rows: Count = Field(description="Rows of a block, elements.")
    cols: Count = Field(description="Columns of a block, elements.")

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Draw which blocks are ones as `uniform` does, then enlarge them."""
        grid = (-(-shape[0] // self.rows), -(-shape[1] // self.cols))
        blocks = Uniform(density=self.density).draw(grid, random, k_axis).mask()
        mask = np.empty(shape, dtype=np.bool_)
        wide = np.repeat(blocks, self.cols, axis=1)[:, : shape[1]]
        for r in range(min(self.rows, shape[0])):
            mask[r :: self.rows] = wide[: len(mask[r :: self.rows])]
        return MaskPattern.adopt(mask)


class Clustered(WithDensity):
    """Rows and columns of unlike density, as in matrices that were pruned for real.

    An element is one with probability density * u[row] * v[column], cut at 1.  u and v are Weibull
    factors of mean 1 with the given relative standard deviations (of lognormal, gamma and Weibull factors
    these came nearest to the share of empty segments in real matrices); runs of `row_run` rows
    (`col_run` columns) share one factor.  The whole mask then holds exactly round(density * size) ones.

    Defaults are those of an attention projection, by moments of published statistics of the DLMC
    matrix transformer/magnitude_pruning/0.9 encoder layer 0 q (Gale et al., "Sparse GPU kernels for
    deep learning", SC 2020; 512 x 512, density 0.1): 32 x 32 tiles have a density of standard
    deviation 0.0653, and segments of 32 rows of one column have 3.20 +- 3.23 ones, where uniform masks
    give 0.0097 and 3.20 +- 1.70.  What a tile shares varies by sqrt(0.0653**2 - 0.0097**2) / 0.1 =
    0.65: `row_spread`, over runs of 64 rows, a head.  A segment varies by
    sqrt(3.23**2 - 1.70**2) / 3.2 = 0.86, and (1 + 0.86**2) = (1 + 0.65**2) * (1 + v**2) leaves
    v = 0.47: `col_spread`.  Convolutions and feed-forward layers show spreads of 0.2 to 0.7 and no
    runs (`row_run: 1`).  Rows and columns are those of the operand as it is given: a weight that stands
    on the right of its product wants the row and column options exchanged.
    """

    name: ClassVar[str] = "clustered"
    row_spread: Spread = Field(default=0.65, description="Relative standard deviation of row densities.")
    col_spread: Spread = Field(default=0.47, description="Relative standard deviation of column densities.")
    row_run: Count = Field(default=64, description="Consecutive rows that share one density factor.")
    col_run: Count = Field(default=1, description="Consecutive columns that share one density factor.")

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Draw the factors, scale them to the density, draw the elements, mend the count uniformly."""
        rows = density_factors(shape[0], self.row_run, self.row_spread, random)
        cols = density_factors(shape[1], self.col_run, self.col_spread, random)
        rows *= scale_to_density(rows, cols, self.density)
        mask = np.empty(shape, dtype=np.bool_)
        row = 0
        for chunk in _row_chunks(mask):
            chunk[...] = _below(random, chunk.shape, rows[row : row + len(chunk), None] * cols)
            row += len(chunk)
        return _settle(mask, self.density, random)


GENERATORS: dict[str, type[GeneratorOptions]] = {
    options.name: options for options in (Block, Clustered, Dense, FeatureMap, Filters, Nm, Uniform)
}
"""Every generator by its name in a study."""


def _known(name: str) -> str:
    """Return `name` if it is a generator's."""
    if name not in GENERATORS:
        raise ValueError(unknown("generator", name, GENERATORS))
    return name


class _Named(BaseModel):
    """The part of a generator's mapping that says which generator it is."""

    model_config = ConfigDict(extra="ignore")
    generator: Annotated[str, AfterValidator(_known)] = Field(description="Name of the generator.")


LARGEST_DRAWN = 2**32
"""Most elements of a generated mask, a byte each (4 GiB); a dense operand takes none."""


def generate(
    options: GeneratorOptions,
    shape: tuple[int, int],
    *,
    seed: int,
    stream: int = 0,
    k_axis: Literal[0, 1] = 1,
) -> Pattern:
    """Return the pattern that `options` describe.

    Parameters
    ----------
    options : GeneratorOptions
        Which generator, and its options.
    shape : tuple of int
        (rows, columns) of the operand; sizes may be 0.
    seed : int
        From 0 to 2**64 - 1.
    stream : int, 0 or more
        Tells patterns of one seed apart, such as the two operands of a GEMM (0 for A, 1 for B).
    k_axis : {0, 1}
        Axis along which K runs: 1 for an A (m, k), 0 for a B (k, n).  Matters to `nm` alone.

    Returns
    -------
    pattern : Pattern

    Raises
    ------
    WorkloadError
        If the shape or the seed is not valid.
    """
    rows, columns = check_shape(shape)
    if rows * columns > LARGEST_DRAWN and not isinstance(options, Dense):
        what = f"a generated operand must have at most {LARGEST_DRAWN:,} elements"
        raise WorkloadError(must(what, f"{rows:,} x {columns:,}"))
    return options.draw((rows, columns), RandomStream(seed, stream), k_axis)


def parse_options(source: Document | Mapping[str, Any]) -> GeneratorOptions:
    """Return the checked options that a study or a caller wrote.

    Parameters
    ----------
    source : Document or mapping
        ``{generator: NAME, OPTION: VALUE, ...}``; a document gives errors their file, line and path.

    Returns
    -------
    options : GeneratorOptions

    Raises
    ------
    ConfigError
        With all problems at once, if there is no such generator or its options do not hold.

    Examples
    --------
    >>> print(parse_options({"generator": "uniform", "sparsity": 0.7}))
    uniform(density=0.3)
    """
    document = source if isinstance(source, Document) else Document(dict(source))
    name = validate(_Named, document).generator
    options = {key: value for key, value in document.data.items() if key != "generator"}
    return validate(GENERATORS[name], replace(document, data=options))


def _row_chunks(mask: BoolArray) -> list[BoolArray]:
    """Split a mask into views of whole rows, about `_CHUNK_ELEMENTS` elements each."""
    rows = max(1, _CHUNK_ELEMENTS // max(1, mask.shape[1]))
    return [mask[r : r + rows] for r in range(0, len(mask), rows)]


def _below(
    random: RandomStream, shape: tuple[int, ...], probability: float | NDArray[np.float64]
) -> BoolArray:
    """Draw True with the given probability (cut at 1), independently for each element of `shape`."""
    thresholds = np.minimum(np.multiply(probability, 2.0**32), 2.0**32 - 1).astype(np.uint32)
    return random.words(math.prod(shape)).reshape(shape) < thresholds


def _settle(mask: BoolArray, density: float, random: RandomStream) -> Pattern:
    """Set or clear uniformly drawn elements of `mask` until round(density * size) are ones."""
    target = round(density * mask.size)
    if target == mask.size:
        return DensePattern((mask.shape[0], mask.shape[1]))
    nnz = int(np.count_nonzero(mask))
    has_surplus = nnz > target
    n_open = abs(nnz - target)
    flat = mask.reshape(-1)
    while n_open:
        candidates = nnz if has_surplus else mask.size - nnz
        if candidates * 64 < mask.size:
            chosen = np.flatnonzero(flat == has_surplus)
            chosen = chosen[np.argsort(random.uniform(chosen.size), kind="stable")]
        else:
            draws = random.uniform(n_open * 2 * mask.size // candidates + 16) * mask.size
            positions = draws.astype(np.int64)
            positions = positions[flat[positions] == has_surplus]
            chosen = positions[np.sort(np.unique(positions, return_index=True)[1])]
        chosen = chosen[:n_open]
        flat[chosen] = not has_surplus
        nnz += -chosen.size if has_surplus else chosen.size
        n_open -= chosen.size
    return MaskPattern.adopt(mask)
