"""Captures a PyTorch module: runs it once and writes the operands of its layers as a trace.

The counterpart of `stcsim.workload.onnx_capture`, called from the user's own Python:

    from stcsim.workload.torch_capture import capture_module
    capture_module(model, (images,), "mine.npz", prune="magnitude:0.8")

Layers are the modules Conv1d, Conv2d and Linear, by the names of ``named_modules``.  Products written as functions
(``torch.matmul``, ``F.conv2d``, scaled dot-product attention) are in no module and are not seen: export the model
to ONNX where they matter.  Needs the package torch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.config.trace import LeftOut
from stcsim.errors import WorkloadError, must
from stcsim.workload.extra import optional
from stcsim.workload.magnitude import Magnitude
from stcsim.workload.onnx_capture import NOT_RETRAINED, traced, write_layer
from stcsim.workload.product import CannotSay, Product, conv, matmul
from stcsim.workload.trace import TraceWriter

_RECURRENT = ("LSTM", "GRU", "RNN")
_LOOKED_UP = ("Embedding", "EmbeddingBag")


def capture_module(
    module: Any,
    inputs: Sequence[Any],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    layers: Sequence[str] = (),
    prune: str | None = None,
    keep_values: bool = False,
) -> None:
    """Run a module on `inputs` and write the trace of its layers.

    Parameters
    ----------
    module : torch.nn.Module
        Run as it stands; call ``eval`` before, unless dropout is wanted.
    inputs : sequence
        Arguments of the module.
    path : str or path-like
        The trace (.npz), written only once everything has gone well.
    name : str, optional
        What the trace calls the model; left out: the module's class.
    layers : sequence of str
        Names or patterns of the layers to keep; empty: all.
    prune : str, optional
        ``magnitude:SHARE``: sets this share of each layer's weights to zero, not retrained.
    keep_values : bool
        Whether values go along, not only which are zero.

    Raises
    ------
    WorkloadError
        If torch is missing, a pattern fits no layer, or there is no layer.
    """
    torch = optional("torch", "torch")
    known = {label: one for label, one in module.named_modules() if _multiplies(torch, one)}
    for pattern in layers:
        if not any(fnmatchcase(label, pattern) for label in known):
            raise WorkloadError(must("layers must fit a layer of the module", pattern, near=known))
    chosen = {
        label: one
        for label, one in known.items()
        if not layers or any(fnmatchcase(label, pattern) for pattern in layers)
    }
    pruning = None if prune is None else Magnitude.parse(prune)
    with TraceWriter(path, name or type(module).__name__) as writer:
        recorder = _Recorder(torch, writer, pruning, keep_values=keep_values)
        hooks = [one.register_forward_hook(recorder.hook(label)) for label, one in chosen.items()]
        try:
            with torch.no_grad():
                module(*inputs)
        finally:
            for hook in hooks:
                hook.remove()
        if not writer.layers:
            message = must("a module must have Conv1d, Conv2d or Linear that run", "none")
            raise WorkloadError(message)
        shapes = [
            f"a tensor {tuple(one.shape)}" if hasattr(one, "shape") else type(one).__name__ for one in inputs
        ]
        writer.finish(
            {
                "inputs": ", ".join(shapes),
                "packages": {package: version(package) for package in ("numpy", "torch")},
            }
            | ({"pruning": f"{pruning}, {NOT_RETRAINED}"} if pruning else {})
        )


def _multiplies(torch: Any, module: Any) -> bool:
    """Tell whether a module has multiply-accumulates of its own."""
    if type(module).__name__ in _LOOKED_UP:
        return False
    own = any(parameter.ndim > 1 for parameter in module.parameters(recurse=False))
    is_quantised = "quantized" in type(module).__module__ and not any(True for _ in module.children())
    return own or is_quantised


class _Recorder:
    """Writes each layer as it runs."""

    def __init__(
        self, torch: Any, writer: TraceWriter, prune: Magnitude | None, *, keep_values: bool
    ) -> None:
        self._torch = torch
        self._writer = writer
        self._prune = prune
        self._keep_values = keep_values
        self._taken: set[str] = set()

    def hook(self, label: str) -> Any:
        def record(module: Any, arguments: tuple[Any, ...], output: Any) -> None:
            del output
            self._record(label or type(module).__name__, module, arguments)

        return record

    def _record(self, label: str, module: Any, arguments: tuple[Any, ...]) -> None:
        """Write a layer, or that it is left out; a module that runs again is another layer."""
        name, i = label, 2
        while name in self._taken:
            name, i = f"{label}#{i}", i + 1
        self._taken.add(name)
        op = type(module).__name__
        x = arguments[0] if arguments else None
        try:
            found = self._product(module, x)
        except CannotSay as error:
            self._writer.left_out.append(LeftOut(name=name, op=op, macs=error.macs, reason=str(error)))
            return
        if found is None:
            reason = "stcsim does not run this module"
            self._writer.left_out.append(LeftOut(name=name, op=op, macs=_count(module, x), reason=reason))
            return
        product, weight = found
        write_layer(
            self._writer,
            traced(name, op, product, "activation", "weight"),
            product,
            (_array(x), weight),
            prune=self._prune,
            keep_values=self._keep_values,
        )

    def _product(self, module: Any, x: Any) -> tuple[Product, NDArray[Any]] | None:
        """Return what a module multiplies, and its weight as the product wants it; None if stcsim does not run it."""
        nn = self._torch.nn
        if isinstance(module, nn.Linear):
            weight = _array(module.weight).T
            return matmul(tuple(x.shape), weight.shape), weight
        if not isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) or module.padding_mode != "zeros":
            return None
        weight = _array(module.weight)
        # A map without a batch has one axis less.
        shape = tuple(x.shape) if x.ndim == weight.ndim else (1, *x.shape)
        product = conv(
            shape,
            weight.shape,
            stride=module.stride,
            pads=_pads(module),
            dilation=module.dilation,
            groups=module.groups,
        )
        return product, weight


def _pads(module: Any) -> list[tuple[int, int]]:
    if module.padding == "valid":
        return [(0, 0)] * len(module.kernel_size)
    if module.padding == "same":
        totals = [gap * (taps - 1) for gap, taps in zip(module.dilation, module.kernel_size, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(pad, pad) for pad in module.padding]


def _array(tensor: Any) -> NDArray[Any]:
    return np.asarray(tensor.detach().cpu().float().numpy())


def _count(module: Any, x: Any) -> int | None:
    """Return the multiply-accumulates of a module that is not run, or None where they are not known."""
    kind = type(module).__name__
    if kind.startswith("ConvTranspose"):
        return int(x.numel()) * int(math.prod(module.weight.shape[1:]))
    if kind in _RECURRENT:
        weights = sum(one.numel() for label, one in module.named_parameters() if "weight" in label)
        return int(x.numel()) // int(x.shape[-1]) * int(weights)
    return None
