"""Generated feature maps and filters: exact counts, and the clustering that they are for."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.workload.conv_generator import FeatureMap, Filters
from stcsim.workload.generator import Uniform, generate
from stcsim.workload.pattern import DensePattern, Pattern


@pytest.mark.parametrize("density", [0.0, 0.001, 0.2, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (6, 45), (64, 576), (3, 9), (0, 9), (5, 0)])
def test_a_mask_holds_exactly_the_rounded_number_of_ones(density: float, shape: tuple[int, int]) -> None:
    for options in (
        FeatureMap(density=density, width=7),
        Filters(density=density, window=9, zero_kernels=0.4),
        Filters(density=density, window=9),
        Filters(density=density, window=1),
    ):
        pattern = generate(options, shape, seed=3)
        assert pattern.shape == shape
        assert pattern.nnz == np.count_nonzero(pattern.mask()) == round(density * shape[0] * shape[1])


def test_a_full_density_takes_no_storage() -> None:
    for options in (FeatureMap(density=1, width=7), Filters(density=1, window=9, zero_kernels=0)):
        assert isinstance(generate(options, (9, 63), seed=0), DensePattern)


def correlation(pattern: Pattern, width: int, step: int) -> float:
    """Return how the elements of a channel correlate with those `step` to their right."""
    maps = pattern.mask().reshape(pattern.shape[0], -1, width).astype(float)
    maps -= maps.mean(axis=(1, 2), keepdims=True)
    return float((maps[:, :, step:] * maps[:, :, :-step]).mean() / (maps * maps).mean())


def test_neighbours_correlate_as_in_measured_feature_maps() -> None:
    """Measured at 28 x 28 and 14 x 14: 0.40 to 0.48 for the next element, 0.21 to 0.28 for the one after."""
    shape = (256, 28 * 28)
    clustered = generate(FeatureMap(density=0.5, width=28), shape, seed=0)
    assert 0.40 < correlation(clustered, 28, 1) < 0.50
    assert 0.17 < correlation(clustered, 28, 2) < 0.28
    assert abs(correlation(generate(Uniform(density=0.5), shape, seed=0), 28, 1)) < 0.02


def test_channels_have_unlike_densities() -> None:
    densities = generate(FeatureMap(density=0.4, width=28), (512, 784), seed=0).mask().mean(axis=1)
    assert 0.35 < densities.std() / densities.mean() < 0.47
    even = (
        generate(FeatureMap(density=0.4, width=28, channel_spread=0), (512, 784), seed=0).mask().mean(axis=1)
    )
    assert np.ptp(even) < 2 / 784


def test_the_share_of_zero_kernels_is_met() -> None:
    """Published for a pruned 64 x 64 x 3 x 3 layer: 24 % of the weights, 34.2 % zero kernels; uniform: 8.5 %."""
    kernels = (
        generate(Filters(density=0.24, window=9, zero_kernels=0.3423), (64, 576), seed=0)
        .mask()
        .reshape(-1, 9)
    )
    assert np.count_nonzero(~kernels.any(axis=1)) == round(0.3423 * 4096)
    uniform = generate(Uniform(density=0.24), (64, 576), seed=0).mask().reshape(-1, 9)
    assert np.count_nonzero(~uniform.any(axis=1)) < 0.1 * 4096


def test_more_zero_kernels_than_the_density_allows_are_not_made() -> None:
    kernels = (
        generate(Filters(density=0.5, window=4, zero_kernels=0.9), (8, 32), seed=0).mask().reshape(-1, 4)
    )
    assert np.count_nonzero(kernels.all(axis=1)) == np.count_nonzero(kernels.any(axis=1)) == 32
