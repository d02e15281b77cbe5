"""Imports Timeloop and Sparseloop problems: one convolution or product as YAML.

Read from what the projections say, not from what dimensions are called: a dimension of all three data spaces is a
group or a batch, one of two of them is m, n or k, and a sum of two in one rank of the input is a sliding
window.  Padding is folded into the input: H = (P - 1) stride + (R - 1) dilation + 1.

Densities are the share of elements that is not zero.  Source: NVlabs/timeloop, problem-shapes, and the
exercises of Accelergy-Project; spelled ``data-spaces``/``read-write`` or ``data_spaces``/``read_write``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

from stcsim.config.document import Document, format_path
from stcsim.config.loader import parse
from stcsim.config.workload import Conv2dShape, GemmShape, Role
from stcsim.errors import Problem, WorkloadError, must, unknown
from stcsim.workload.imported import DENSE, Imported, ImportedLayer

_LARGEST = 10**12
_TERM = re.compile(r"\[([^\[\]]*)\]")
_WEIGHTS = ("weights", "weight", "filters", "filter", "w")
_UNIFORM = ("hypergeometric", "uniform")
_STRUCTURED = ("fixed_structured", "fixed-structured")

_CNN_LAYER: dict[str, Any] = {
    "dimensions": ["R", "S", "P", "Q", "C", "K", "N"],
    "coefficients": [
        {"name": name, "default": 1} for name in ("Wstride", "Hstride", "Wdilation", "Hdilation")
    ],
    "data_spaces": [
        {"name": "Weights", "projection": [[["C"]], [["K"]], [["R"]], [["S"]]]},
        {
            "name": "Inputs",
            "projection": [
                [["N"]],
                [["C"]],
                [["R", "Wdilation"], ["P", "Wstride"]],
                [["S", "Hdilation"], ["Q", "Hstride"]],
            ],
        },
        {"name": "Outputs", "projection": [[["N"]], [["K"]], [["Q"]], [["P"]]], "read_write": True},
    ],
}
"""The shape that Timeloop means by ``cnn-layer`` (NVlabs/timeloop, problem-shapes/cnn_layer.yaml)."""


@dataclass(frozen=True)
class _Space:
    """A data space: for each rank its terms, a dimension and the coefficient it is multiplied by (or None)."""

    name: str
    ranks: tuple[tuple[tuple[str, str | None], ...], ...]

    @property
    def dimensions(self) -> set[str]:
        return {name for rank in self.ranks for name, _ in rank}


def read_problem(text: str, file: str, name: str) -> Imported:
    """Read a problem.

    Parameters
    ----------
    text : str
    file : str
        What messages call it.
    name : str
        What the layer is called where the problem has no name.

    Returns
    -------
    imported : Imported

    Raises
    ------
    WorkloadError, ConfigError
        With file, line and path of what does not hold.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        if "{{" in line:
            message = "must be plain YAML: write out what Timeloop's templates include"
            raise WorkloadError(Problem(message, file, number))
    return _Reader(parse(text, file)).read(name)


class _Reader:
    """One problem's document, and what has been found in it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._notes: list[str] = []

    def read(self, name: str) -> Imported:
        problem = self._mapping(("problem",))
        shape = self._shape(problem)
        where: tuple[str | int, ...] = ("problem", "instance")
        if "instance" not in problem:
            where = ("problem",)
        instance = self._mapping(where)
        dimensions = [str(one) for one in shape.get("dimensions") or ()]
        if not dimensions:
            self._refuse("must list the dimensions", ("problem", "shape"))
        coefficients = self._coefficients(shape)
        expected = {*dimensions, *coefficients, "densities", "name", "version", "shape", "commonDensity"}
        for key in instance:
            if key not in expected:
                self._refuse(
                    unknown("dimension or coefficient", key, {*dimensions, *coefficients}), (*where, key)
                )
        sizes = {one: self._whole(instance, where, one) for one in dimensions}
        factors = {
            one: self._whole(instance, where, one) if one in instance else default
            for one, default in coefficients.items()
        }
        inputs, output = self._spaces(shape)
        weight = next((one for one in inputs if one.name.lower() in _WEIGHTS), inputs[1])
        other = inputs[0] if weight is inputs[1] else inputs[1]
        layer = self._layer(name, sizes, factors, (other, weight, output))
        densities = self._mapping((*where, "densities")) if "densities" in instance else {}
        patterns = self._patterns(densities, (*where, "densities"), (other, weight, output))
        layer = ImportedLayer(
            layer.name, layer.sizes, patterns[other.name], patterns[weight.name], layer.role_a, layer.role_b
        )
        if layer.macs_total != prod(sizes.values()):
            what = f"must use each dimension once, to make {prod(sizes.values())} MACs"
            self._refuse(must(what, layer.macs_total), ("problem", "shape"))
        return Imported("Timeloop problem", (layer,), tuple(self._notes))

    def _refuse(self, message: str, path: tuple[str | int, ...]) -> NoReturn:
        place = self._document.place_of(path)
        raise WorkloadError(Problem(message, place.file, place.line, format_path(path) or None))

    def _mapping(self, path: tuple[str | int, ...]) -> dict[str, Any]:
        try:
            found = self._document.get(path)
        except KeyError:
            found = None
        if not isinstance(found, dict):
            self._refuse(must("must be a mapping", "nothing" if found is None else found), path)
        return found

    def _whole(self, instance: Mapping[str, Any], where: tuple[str | int, ...], key: str) -> int:
        value = instance.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
            shown = "nothing" if value is None else value
            self._refuse(must("must be a whole number of 1 or more", shown), (*where, key))
        return value

    def _shape(self, problem: Mapping[str, Any]) -> dict[str, Any]:
        path = ("problem", "shape")
        shape = problem.get("shape")
        if isinstance(shape, str) and shape.removesuffix(".yaml").replace("_", "-") == "cnn-layer":
            return _CNN_LAYER
        if isinstance(shape, str):
            self._refuse(must("must be written out, or be cnn-layer", shape), path)
        return self._mapping(path)

    def _coefficients(self, shape: Mapping[str, Any]) -> dict[str, int]:
        found = {}
        for i, one in enumerate(shape.get("coefficients") or ()):
            default = one.get("default", 1) if isinstance(one, dict) else None
            if not isinstance(one, dict) or not isinstance(one.get("name"), str) or type(default) is not int:
                path = ("problem", "shape", "coefficients", i)
                self._refuse("must have a name and a whole number as default", path)
            found[one["name"]] = default
        return found

    def _spaces(self, shape: Mapping[str, Any]) -> tuple[tuple[_Space, _Space], _Space]:
        """Return the two inputs and the output."""
        key = next(
            (one for one in ("data_spaces", "data-spaces", "dataspaces") if one in shape), "data_spaces"
        )
        path = ("problem", "shape", key)
        listed = shape.get(key)
        inputs: list[_Space] = []
        outputs: list[_Space] = []
        for i, one in enumerate(listed if isinstance(listed, list) else ()):
            if not isinstance(one, dict):
                self._refuse(must("must be a mapping", one), (*path, i))
            written = next((one[word] for word in ("read_write", "read-write") if word in one), False)
            space = _Space(str(one.get("name")), self._ranks(one.get("projection"), (*path, i, "projection")))
            (outputs if written in (True, "True") else inputs).append(space)
        if len(inputs) != 2 or len(outputs) != 1:
            found = f"{len(inputs)} and {len(outputs)}"
            self._refuse(must("must be two inputs and one output (read_write: true)", found), path)
        return (inputs[0], inputs[1]), outputs[0]

    def _ranks(
        self, projection: Any, path: tuple[str | int, ...]
    ) -> tuple[tuple[tuple[str, str | None], ...], ...]:
        """Return the ranks of a projection, which is a list of sums of products or the text ``[N][R*a + P*b]``."""
        ranks: list[Any] = []
        if isinstance(projection, str):
            ranks = [
                [[part.strip() for part in term.split("*")] for term in rank.split("+")]
                for rank in _TERM.findall(projection)
            ]
        elif isinstance(projection, list):
            ranks = projection
        found = []
        for rank in ranks:
            terms = []
            for term in rank if isinstance(rank, list) else ():
                names = [term] if isinstance(term, str) else term
                if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                    names = []
                if not 1 <= len(names) <= 2:
                    self._refuse(must("must be sums of DIMENSION or DIMENSION * COEFFICIENT", rank), path)
                terms.append((names[0], names[1] if len(names) > 1 else None))
            found.append(tuple(terms))
        if not found or not all(found):
            self._refuse("must list the ranks of the data space", path)
        return tuple(found)

    def _layer(
        self,
        name: str,
        sizes: Mapping[str, int],
        factors: Mapping[str, int],
        spaces: tuple[_Space, _Space, _Space],
    ) -> ImportedLayer:
        """Return what the projections make of the dimensions."""
        x, w, out = spaces
        path = ("problem", "shape")
        for dimension in sizes:
            places = [dimension in space.dimensions for space in spaces]
            if sum(places) < 2 and sizes[dimension] > 1:
                self._refuse(must("must have each dimension in two data spaces or more", dimension), path)
        stray = (x.dimensions | w.dimensions | out.dimensions) - set(sizes)
        if stray:
            self._refuse(unknown("dimension", min(stray), sizes), path)
        windows = [rank for rank in x.ranks if len(rank) > 1]
        if any(len(rank) > 1 for space in (w, out) for rank in space.ranks):
            self._refuse("must have sums in the input only", path)
        sliding = {dimension for rank in windows for dimension, _ in rank}

        def size(*, in_x: bool, in_w: bool, in_out: bool) -> int:
            return prod(
                size
                for dimension, size in sizes.items()
                if dimension not in sliding
                and [dimension in space.dimensions for space in spaces] == [in_x, in_w, in_out]
            )

        groups = size(in_x=True, in_w=True, in_out=True)
        rows = size(in_x=True, in_w=False, in_out=True)
        columns = size(in_x=False, in_w=True, in_out=True)
        inner = size(in_x=True, in_w=True, in_out=False)
        if not windows:
            role_b: Role = "weight"
            product = GemmShape(m=rows, n=columns, k=inner, batch=groups)
            return ImportedLayer(name, product, role_b=role_b)
        axes = [self._axis(rank, sizes, factors, w, out) for rank in windows]
        if len(axes) > 2:
            self._refuse(must("must slide along one or two axes", len(axes)), path)
        if len(axes) == 1:
            axes.insert(0, (1, 1, 1, 1))
        (p, r, stride_h, dilation_h), (q, s, stride_w, dilation_w) = axes
        return ImportedLayer(
            name,
            Conv2dShape(
                n=rows,
                c=groups * inner,
                h=(p - 1) * stride_h + (r - 1) * dilation_h + 1,
                w=(q - 1) * stride_w + (s - 1) * dilation_w + 1,
                k=groups * columns,
                r=r,
                s=s,
                stride=(stride_h, stride_w),
                dilation=(dilation_h, dilation_w),
                groups=groups,
            ),
        )

    def _axis(
        self,
        rank: tuple[tuple[str, str | None], ...],
        sizes: Mapping[str, int],
        factors: Mapping[str, int],
        weight: _Space,
        out: _Space,
    ) -> tuple[int, int, int, int]:
        """Return outputs, taps, stride and dilation of a sliding window."""
        path = ("problem", "shape")
        pixel = [term for term in rank if term[0] in out.dimensions and term[0] not in weight.dimensions]
        tap = [term for term in rank if term[0] in weight.dimensions and term[0] not in out.dimensions]
        if len(rank) != 2 or len(pixel) != 1 or len(tap) != 1:
            shown = " + ".join(name for name, _ in rank)
            self._refuse(
                must("a window must be the sum of an output's and a weight's dimension", shown), path
            )
        steps = []
        for _, coefficient in (*pixel, *tap):
            if coefficient is not None and coefficient not in factors:
                self._refuse(unknown("coefficient", coefficient, factors), path)
            steps.append(1 if coefficient is None else factors[coefficient])
        return sizes[pixel[0][0]], sizes[tap[0][0]], steps[0], steps[1]

    def _patterns(
        self, densities: Mapping[str, Any], where: tuple[str | int, ...], spaces: tuple[_Space, ...]
    ) -> dict[str, Mapping[str, Any]]:
        """Return where each data space's pattern comes from."""
        patterns: dict[str, Mapping[str, Any]] = {space.name: DENSE for space in spaces}
        for name, value in densities.items():
            path = (*where, name)
            if name not in patterns:
                self._refuse(unknown("data space", name, patterns), path)
            distribution = "hypergeometric"
            if isinstance(value, dict):
                distribution, path = str(value.get("distribution")), (*path, "density")
                value = value.get("density")
            if name == spaces[-1].name:
                self._notes.append(f"the density of {name} is left aside: it follows from the operands")
                continue
            if distribution not in (*_UNIFORM, *_STRUCTURED):
                known = f"must be one of {', '.join((*_UNIFORM, *_STRUCTURED))}"
                self._refuse(must(known, distribution), (*where, name, "distribution"))
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                shown = "nothing" if value is None else value
                self._refuse(must("must be a density from 0 to 1, the share that is not zero", shown), path)
            if distribution in _STRUCTURED:
                self._notes.append(
                    f"{name}: {distribution} says no block size; its zeros are spread uniformly"
                )
            if value < 1:
                patterns[name] = {"pattern": {"generator": "uniform", "density": float(value)}}
        return patterns
