"""Generators of the operands of convolutions, clustered as real ones are.

Feature maps have channels of unlike density and zeros that stand together; pruned
filters have whole kernels without a weight.  Both matter: a uniform mask of the same
density understates what can be skipped and how unequal the work is.  The shapes are
those of `stcsim.workload.conv2d`.  Knows nothing of layers or machines.

Statistics behind the defaults: nine layers of a ReLU network on a photograph
("resnet50-thin", the network of workloads/traces), read with stcsim.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stcsim.workload.generation import (
    Count,
    OptionalFraction,
    RandomStream,
    Spread,
    WithDensity,
    density_factors,
    scale_to_density,
)
from stcsim.workload.pattern import BoolArray, DensePattern, MaskPattern, Pattern

_CHUNK_ELEMENTS = 1 << 22
"""Elements drawn at a time: bounds temporary memory to about 64 MiB."""


class FeatureMap(WithDensity):
    """A feature map after a ReLU: channels of unlike density, zeros that stand together.

    Rows are channels (of each image), columns the map's elements row by row.  A channel's density is
    drawn from a Weibull distribution; its non-zeros are where noise, averaged over `run` x `run`
    neighbours, is largest.  The whole map holds exactly round(density * size) non-zeros.

    Defaults from nine measured layers: channel densities have a relative standard deviation of 0.21 to
    0.61 (median 0.42); horizontal neighbours correlate by 0.28 to 0.83 (median 0.43), second neighbours
    by 0.09 to 0.73 (median 0.28), where 3 x 3 averaging gives 0.46 and 0.22.  Not modelled: pixels that
    are zero in most channels at once (relative deviation of a pixel's density 0 to 0.32).
    """

    name: ClassVar[str] = "feature_map"
    width: Count = Field(description="Elements of a row of the map.")
    channel_spread: Spread = Field(
        default=0.42, description="Relative standard deviation of channel densities."
    )
    run: Count = Field(default=3, description="Edge of the square over which neighbours share their noise.")

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Draw the channels' counts, then each channel's noise."""
        rows, cols = shape
        target = round(self.density * rows * cols)
        if target == rows * cols:
            return DensePattern(shape)
        counts = self._counts(rows, cols, target, random)
        mask = np.empty(shape, np.bool_)
        step = max(1, _CHUNK_ELEMENTS // max(1, cols))
        for r0 in range(0, rows, step):
            noise = self._noise(len(mask[r0 : r0 + step]), cols, random)
            mask[r0 : r0 + step] = _largest(noise, counts[r0 : r0 + step])
        return MaskPattern.adopt(mask)

    def _counts(self, rows: int, cols: int, target: int, random: RandomStream) -> NDArray[np.int64]:
        """Return the non-zeros of each row, summing to `target`: rounded down, the rest to the first rows."""
        factors = density_factors(rows, 1, self.channel_spread, random)
        scaled = np.minimum(1.0, scale_to_density(factors, np.ones(1), self.density) * factors)
        counts = np.minimum(cols, (scaled * cols).astype(np.int64))
        while (short := target - int(counts.sum())) != 0:
            room = np.flatnonzero(counts < cols if short > 0 else counts > 0)[: abs(short)]
            counts[room] += 1 if short > 0 else -1
        return counts

    def _noise(self, rows: int, cols: int, random: RandomStream) -> NDArray[np.uint32]:
        """Return noise averaged over neighbours, with noise of its own below to tell equals apart."""
        height = -(-cols // self.width)
        edge = self.run - 1
        grid = (rows, height + edge, self.width + edge)
        size = grid[0] * grid[1] * grid[2]
        raw = random.words(-(-size // 4)).view(np.uint8)[:size].reshape(grid)
        down = np.zeros((rows, height, self.width + edge), np.uint32)
        for i in range(self.run):
            down += raw[:, i : i + height]
        both = np.zeros((rows, height, self.width), np.uint32)
        for i in range(self.run):
            both += down[:, :, i : i + self.width]
        both <<= np.uint32(8)
        both |= raw[:, :height, : self.width]
        return both.reshape(rows, -1)[:, :cols]


class Filters(WithDensity):
    """Pruned filters: output channels of unlike density, and kernels without any weight.

    Rows are output channels, columns taps (channel, filter row, filter column), so that a kernel is a run
    of `window` columns.  `zero_kernels` of the kernels hold no weight, as far as the density allows; each
    other one holds at least one, and the rest fall on them uniformly.  Which kernels are left is drawn as
    `clustered` does.  The mask holds exactly round(density * size) weights.

    Real 3 x 3 layers at density 0.2 have 30 to 40 % zero kernels (measured), where a uniform mask has
    13 %; published pruning tables give the share layer by layer (workloads/sparsity).  Left out, kernels
    are not drawn apart: taps are, clustered by rows and columns.
    """

    name: ClassVar[str] = "filters"
    window: Count = Field(description="Taps of a kernel: filter rows times filter columns.")
    zero_kernels: OptionalFraction = Field(
        default=None, description="Share of the kernels without any weight; left out: as it falls."
    )
    row_spread: Spread = Field(
        default=0.4, description="Relative standard deviation of the densities of output channels."
    )
    col_spread: Spread = Field(
        default=0.4, description="Relative standard deviation of the densities of input channels (or taps)."
    )

    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Draw the kernels that are left, one weight in each, and the other weights."""
        size = shape[0] * shape[1]
        target = round(self.density * size)
        if target == size:
            return DensePattern(shape)
        if self.zero_kernels is None or self.window == 1 or shape[1] % self.window:
            return self._clustered(shape, target, random)
        kernels = (shape[0], shape[1] // self.window)
        wanted = round((1 - self.zero_kernels) * kernels[0] * kernels[1])
        left = min(max(wanted, -(-target // self.window)), target)
        alive = np.flatnonzero(self._clustered(kernels, left, random).mask())
        # Ranks order the weights of all kernels left: one of each first, then the others as drawn.
        ranks = (random.words(left * self.window) >> np.uint32(1)).reshape(left, self.window)
        first = ranks.argmax(axis=1)
        ranks[np.arange(left), first] |= np.uint32(1 << 31)
        mask = np.zeros((kernels[0] * kernels[1], self.window), np.bool_)
        mask[alive] = _largest(ranks.reshape(1, -1), np.array([target])).reshape(left, self.window)
        return MaskPattern.adopt(mask.reshape(shape))

    def _clustered(self, shape: tuple[int, int], target: int, random: RandomStream) -> Pattern:
        """Return `target` ones whose rows and columns have density factors.

        Notes
        -----
        Each element gets an exponential waiting time of rate row factor * column factor; the first
        `target` to come are ones.  (Sampling without replacement, weights proportional to the factors.)
        """
        rows = density_factors(shape[0], 1, self.row_spread, random)
        cols = density_factors(shape[1], 1, self.col_spread, random)
        waits = -np.log1p(-random.uniform(shape[0] * shape[1]).reshape(shape))
        waits /= np.maximum(rows[:, None] * cols, 1e-12)
        mask = np.zeros(shape[0] * shape[1], np.bool_)
        if target:
            mask[np.argpartition(waits.reshape(-1), target - 1)[:target]] = True
        return MaskPattern.adopt(mask.reshape(shape))


def _largest(values: NDArray[np.uint32], counts: NDArray[np.int64]) -> BoolArray:
    """Return where each row's `counts[row]` largest values are; of equal ones, the first."""
    length = values.shape[1]
    ordered = np.sort(values, axis=1)
    at = np.clip(length - counts, 0, max(0, length - 1))
    threshold = ordered[np.arange(len(values)), at][:, None] if length else values
    chosen: BoolArray = values > threshold
    ties = values == threshold
    missing = counts - np.count_nonzero(chosen, axis=1)
    chosen |= ties & (np.cumsum(ties, axis=1) <= missing[:, None])
    return chosen
