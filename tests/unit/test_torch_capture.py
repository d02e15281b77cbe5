"""The operands of PyTorch modules; skipped where torch is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload.torch_capture import capture_module
from stcsim.workload.trace import Trace


def test_a_missing_torch_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(WorkloadError) as caught:
        capture_module(None, (), tmp_path / "t.npz")
    assert str(caught.value) == "the package torch must be installed: pip install 'stcsim[torch]'"


def test_convolutions_and_linear_layers_are_recorded(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding="same", groups=8), nn.ReLU(),
        nn.ConvTranspose2d(8, 2, 2, stride=2), nn.Flatten(), nn.Linear(2 * 144, 5),
    ).eval()  # fmt: skip
    x = torch.randn(1, 3, 12, 12)
    out = tmp_path / "t.npz"
    capture_module(model, (x,), out, name="mine", prune="magnitude:0.5", keep_values=True)
    trace = Trace(out)
    assert [(layer.name, layer.op) for layer in trace.layers] == [
        ("0", "Conv2d"),
        ("2", "Conv2d"),
        ("6", "Linear"),
    ]
    first, depthwise, head = trace.layers
    np.testing.assert_array_equal(trace.values(first, "a"), x.numpy().reshape(3, 144))
    relu = model[:2](x).detach().numpy()
    np.testing.assert_array_equal(trace.pattern(depthwise, "a").mask(), relu.reshape(8, 36) != 0)
    assert depthwise.conv2d is not None
    assert (depthwise.conv2d.groups, depthwise.conv2d.padding) == (8, (1, 1))
    assert trace.pattern(head, "b").shape == (288, 5)
    assert trace.pattern(head, "b").nnz == 720
    (left,) = trace.meta.left_out
    assert (left.name, left.macs) == ("4", 8 * 36 * 2 * 4)


def test_sequences_and_recurrent_modules(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 6)
            self.rnn = nn.LSTM(6, 4, batch_first=True)
            self.out = nn.Linear(4, 3)

        def forward(self, tokens: object) -> object:
            states, _ = self.rnn(self.embed(tokens))
            return self.out(self.out.weight.new_zeros(4) + states)

    out = tmp_path / "t.npz"
    capture_module(Model(), (torch.zeros(2, 5, dtype=torch.long),), out)
    trace = Trace(out)
    (layer,) = trace.layers
    assert layer.gemm is not None
    assert (layer.name, layer.gemm.m, layer.gemm.n, layer.gemm.k) == ("out", 10, 3, 4)
    (left,) = trace.meta.left_out
    assert (left.name, left.op, left.macs) == ("rnn", "LSTM", 10 * (16 * 6 + 16 * 4))


def test_a_pattern_that_fits_no_layer_is_told(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    with pytest.raises(WorkloadError, match="layers must fit a layer of the module, not head"):
        capture_module(model, (torch.zeros(1, 4),), tmp_path / "t.npz", layers=["head"])
    assert list(tmp_path.iterdir()) == []
