"""Generators: exact counts, the structure they name, seeds that mean one pattern, and errors in one form."""

import re
import subprocess
import sys

import numpy as np
import pytest

from stcsim.config.loader import parse
from stcsim.errors import ConfigError, WorkloadError
from stcsim.workload.generator import (
    GENERATORS,
    Block,
    Clustered,
    Dense,
    Nm,
    Uniform,
    generate,
    parse_options,
)
from stcsim.workload.pattern import DensePattern

DENSITIES = [0.0, 1e-6, 0.001, 0.02, 0.1, 1 / 3, 0.5, 0.9, 0.999, 1.0]
SHAPES = [(1, 1), (7, 13), (33, 65), (64, 300), (1, 997), (0, 5), (5, 0)]


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_uniform_and_clustered_hold_exactly_the_rounded_number_of_ones(shape, density):
    for options in (Uniform(density=density), Clustered(density=density)):
        pattern = generate(options, shape, seed=3)
        assert pattern.shape == shape
        assert pattern.nnz == np.count_nonzero(pattern.mask()) == round(density * (shape[0] * shape[1]))


def test_a_large_mask_holds_its_exact_count_too():
    for options in (Uniform(density=0.3), Clustered(density=0.1)):
        assert generate(options, (2049, 4097), seed=0).nnz == round(options.density * 2049 * 4097)


def test_every_position_of_a_uniform_mask_is_equally_likely():
    counts = np.sum([generate(Uniform(density=0.25), (4, 6), seed=s).mask() for s in range(2000)], axis=0)
    assert np.all(np.abs(counts - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75))


def test_every_pair_of_a_uniform_mask_is_equally_likely():
    """Two of five elements: each of the ten masks about as often as the others."""
    drawn = [
        tuple(np.flatnonzero(generate(Uniform(density=0.4), (1, 5), seed=s).mask())) for s in range(3000)
    ]
    counts = {pair: drawn.count(pair) for pair in set(drawn)}
    assert len(counts) == 10
    assert all(abs(count - 300) < 5 * np.sqrt(300) for count in counts.values())


def test_a_full_density_gives_the_pattern_without_storage():
    for options in (Dense(), Uniform(density=1), Clustered(density=1)):
        assert isinstance(generate(options, (9, 5), seed=0), DensePattern)


@pytest.mark.parametrize("k_axis", [0, 1])
@pytest.mark.parametrize(("n", "m"), [(2, 4), (1, 2), (1, 4), (4, 8), (3, 3), (16, 32)])
def test_nm_puts_n_ones_into_every_group_along_k(n, m, k_axis):
    pattern = generate(Nm(n=n, m=m), (8 * m, 6 * m), seed=2, k_axis=k_axis)
    counts = pattern.group_counts(k_axis, m)
    assert counts.min() == counts.max() == n


def test_nm_fills_a_short_last_group_as_pruning_would():
    for k, expected in ((30, 2), (29, 1), (31, 2)):
        pattern = generate(Nm(), (5, k), seed=2, k_axis=1)
        assert pattern.group_counts(1, 4)[:, :7].tolist() == [[2] * 7] * 5
        assert pattern.group_counts(1, 4)[:, 7].tolist() == [expected] * 5


def test_each_of_the_six_2_4_groups_is_equally_likely():
    groups = generate(Nm(), (400, 60), seed=4, k_axis=1).mask().reshape(-1, 4) @ [8, 4, 2, 1]
    found, counts = np.unique(groups, return_counts=True)
    assert found.tolist() == [3, 5, 6, 9, 10, 12]
    assert np.all(np.abs(counts - 1000) < 5 * np.sqrt(1000))


def test_blocks_are_whole_and_their_share_is_exact():
    mask = generate(Block(rows=4, cols=8, density=0.3), (40, 80), seed=1).mask()
    blocks = mask.reshape(10, 4, 10, 8).sum(axis=(1, 3))
    assert sorted(np.unique(blocks)) == [0, 32]
    assert np.count_nonzero(blocks) == 30


def test_blocks_are_cut_off_at_ragged_edges():
    mask = generate(Block(rows=4, cols=8, density=0.5), (10, 20), seed=1).mask()
    corners = mask[::4, ::8]
    assert np.count_nonzero(corners) == round(0.5 * 9)
    np.testing.assert_array_equal(mask, np.kron(corners, np.ones((4, 8), dtype=bool))[:10, :20])
    assert generate(Block(rows=100, cols=100, density=1), (3, 5), seed=1).nnz == 15


def tile_statistics(mask):
    rows, cols = mask.shape
    segments = mask.reshape(rows // 32, 32, cols).sum(axis=1)
    tiles = mask.reshape(rows // 32, 32, cols // 32, 32).mean(axis=(1, 3))
    return {"segment_std": segments.std(), "empty": (segments == 0).mean(), "tile_std": tiles.std()}


def mean_statistics(options, n_seeds=12):
    drawn = [tile_statistics(generate(options, (512, 512), seed=s).mask()) for s in range(n_seeds)]
    return {key: np.mean([one[key] for one in drawn]) for key in drawn[0]}


def test_default_spreads_reproduce_the_tiles_of_a_real_pruned_projection_better_than_uniform():
    """DLMC transformer 0.9 q: segment std 3.23, empty 27.4 %, tile std .065; uniform: 1.70, 3.4 %, .0097."""
    real = {"segment_std": 3.2292, "empty": 0.2736, "tile_std": 0.0653}
    clustered, uniform = mean_statistics(Clustered(density=0.1)), mean_statistics(Uniform(density=0.1))
    assert clustered["segment_std"] == pytest.approx(real["segment_std"], rel=0.08)
    assert clustered["tile_std"] == pytest.approx(real["tile_std"], rel=0.08)
    assert 0.15 < clustered["empty"] < real["empty"]
    for key in real:
        assert abs(clustered[key] - real[key]) < abs(uniform[key] - real[key]) / 2


def test_a_clustered_mask_has_the_spreads_that_were_asked_for():
    options = Clustered(density=0.05, row_spread=0.6, col_spread=0.3, row_run=1)
    pattern = generate(options, (1024, 1024), seed=1)
    for counts, spread in ((pattern.counts_per_row(), 0.6), (pattern.counts_per_col(), 0.3)):
        noise = counts.mean()  # of a binomial count at low density
        assert np.sqrt(counts.var() - noise) / counts.mean() == pytest.approx(spread, rel=0.1)


def test_runs_of_rows_share_their_density():
    pattern = generate(Clustered(density=0.2, row_spread=1, col_spread=0, row_run=16), (256, 512), seed=1)
    rows = pattern.counts_per_row().reshape(16, 16)
    assert rows.mean(axis=1).std() > 5 * rows.std(axis=1).mean()


def test_without_spread_a_clustered_mask_is_a_uniform_one():
    options = Clustered(density=0.1, row_spread=0, col_spread=0)
    clustered, uniform = mean_statistics(options, 4), mean_statistics(Uniform(density=0.1), 4)
    for key, value in uniform.items():
        assert clustered[key] == pytest.approx(value, rel=0.1)


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_a_pattern_depends_on_seed_stream_options_and_shape_alone(name):
    needed = {
        "uniform": {"density": 0.3},
        "clustered": {"density": 0.3},
        "block": {"rows": 2, "cols": 2, "density": 0.3},
        "feature_map": {"width": 3, "density": 0.3},
        "filters": {"window": 2, "zero_kernels": 0.5, "density": 0.3},
    }
    options = parse_options({"generator": name, **needed.get(name, {})})
    first = generate(options, (64, 64), seed=7, stream=1)
    assert generate(options, (64, 64), seed=7, stream=1) == first
    if name != "dense":
        assert generate(options, (64, 64), seed=8, stream=1) != first
        assert generate(options, (64, 64), seed=7, stream=0) != first


def test_seeds_mean_the_same_patterns_for_ever():
    """Digests pinned once; a change here changes published results."""
    digests = {
        str(options): generate(options, (65, 40), seed=11, stream=1, k_axis=0).digest[:12]
        for options in (
            Uniform(density=0.3),
            Nm(),
            Block(rows=3, cols=5, density=0.4),
            Clustered(density=0.1),
        )
    }
    assert digests == {
        "uniform(density=0.3)": "357355f25bb9",
        "nm(n=2, m=4)": "9614b0232621",
        "block(density=0.4, rows=3, cols=5)": "70d517e09309",
        "clustered(density=0.1, row_spread=0.65, col_spread=0.47, row_run=64, col_run=1)": "4b8bf4a47717",
    }


def test_another_process_draws_the_same_pattern():
    script = (
        "from stcsim.workload.generator import Clustered, generate;"
        "print(generate(Clustered(density=0.2), (70, 33), seed=5).digest)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == generate(Clustered(density=0.2), (70, 33), seed=5).digest


def test_sparsity_is_one_minus_density_as_decimals_are_written():
    for sparsity, density in ((0.7, 0.3), (0.95, 0.05), (0, 1), (1, 0), (0.999, 0.001)):
        for name in ("uniform", "clustered"):
            options = parse_options({"generator": name, "sparsity": sparsity})
            assert options.density == density
            assert str(options) == str(parse_options({"generator": name, "density": density}))
            assert "sparsity" not in options.model_dump()


SPELLINGS = "a fraction between 0 and 1, such as density: 0.3 or sparsity: 0.7"


def refusal(text):
    """Return the lines of the error that a study with this pattern gives."""
    document = parse(f"a:\n  pattern: {text}", "s.yaml").subtree("a", "pattern")
    with pytest.raises(ConfigError) as caught:
        parse_options(document)
    return [line.removeprefix("s.yaml:2: a.pattern") for line in str(caught.value).splitlines()]


@pytest.mark.parametrize("key", ["density", "sparsity"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("70%", "70% (did you mean 0.7?)"),
        ("'50'", "'50' (did you mean 0.5?)"),
        ("50", "50 (did you mean 0.5?)"),
        ("12.5 %", "12.5 % (did you mean 0.125?)"),
        ("1.5", "1.5 (did you mean 0.015?)"),
        ("101", "101"),
        ("-0.1", "-0.1"),
        ("2:4", "2:4"),
        (".nan", ".nan"),
        ("true", "true"),
        ("null", "null"),
        ("[0.5]", "[0.5]"),
        ("half", "half"),
    ],
)
def test_what_is_not_a_fraction_is_refused_with_the_accepted_spellings(key, value, shown):
    text = f"{{generator: uniform, {key}: {value}}}"
    assert refusal(text) == [f".{key}: must be {SPELLINGS}, not {shown}"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 2, True, "0.5", None])
def test_a_caller_cannot_give_what_is_not_a_fraction_either(value):
    with pytest.raises(ValueError, match=f"must be {SPELLINGS}, not "):
        Uniform(density=value)


def test_density_and_sparsity_together_are_refused_even_when_they_agree():
    assert refusal("{generator: uniform, density: 0.3, sparsity: 0.7}") == [
        f".sparsity: must not be given beside density: one of the two, {SPELLINGS}"
    ]


def test_all_problems_of_the_options_are_reported_at_once():
    assert refusal("{generator: block, rows: 0, cols: 2.5, sparsty: 0.1}") == [
        ".density: must be given",
        ".rows: must be at least 1, not 0",
        ".cols: must be a whole number, not 2.5",
        ".sparsty: must be a known key (cols, density, rows, sparsity), not sparsty (did you mean sparsity?)",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{generator: uniform}", ".density: must be given"),
        ("{generator: nm, n: 5}", ".n: must be at most m (4), not 5"),
        ("{generator: nm, n: true}", ".n: must be a whole number, not true"),
        ("{generator: nm, density: 0.5}", ".density: must be a known key (m, n), not density"),
        ("{generator: dense, density: 0.5}", ".density: must not be given: no key is known here"),
        ("{generator: clustered, density: 0.1, row_spread: -1}", ".row_spread: must be at least 0, not -1"),
        ("{generator: clustered, density: 0.1, row_run: 0}", ".row_run: must be at least 1, not 0"),
        ("{density: 0.5}", ".generator: must be given"),
        (
            "{generator: unifrom, density: 0.5}",
            ".generator: must be a known generator (block, clustered, dense, feature_map, filters, nm, uniform), "
            "not unifrom (did you mean uniform?)",
        ),
    ],
)
def test_options_that_do_not_hold_are_refused(text, message):
    assert refusal(text) == [message]


def test_a_seed_or_shape_that_is_not_one_is_refused():
    message = re.escape("a seed must be an integer from 0 to 2**64 - 1, not -1")
    with pytest.raises(WorkloadError, match=f"^{message}$"):
        generate(Dense(), (2, 2), seed=-1)
    message = re.escape("the shape of an operand must be two sizes, each 0 or more, not (2, -2)")
    with pytest.raises(WorkloadError, match=f"^{message}$"):
        generate(Uniform(density=0.5), (2, -2), seed=1)


def test_the_schema_offers_both_spellings_of_density_and_describes_every_field():
    for model in GENERATORS.values():
        schema = model.model_json_schema()
        assert schema["additionalProperties"] is False
        assert all(field.get("description") for field in schema["properties"].values())
        if "density" in schema["properties"]:
            assert schema["oneOf"] == [{"required": ["density"]}, {"required": ["sparsity"]}]
            assert not {"density", "sparsity"} & set(schema["required"])


def test_options_show_themselves_as_they_are_written():
    assert str(Nm()) == "nm(n=2, m=4)"
    assert str(Dense()) == "dense()"
