"""stcsim: a cycle-level simulator of sparse tensor cores.

Data flows one way: isa, config -> workload -> formats -> lowering -> machine ->
result -> report; `stcsim.study`, `stcsim.api` and `stcsim.cli` stand above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stcsim.api import gemm, run_study, simulate

__all__ = ["MODEL_VERSION", "__version__", "gemm", "run_study", "simulate"]

__version__ = "0.1.0"
MODEL_VERSION = 4
"""Raised whenever a cycle count can change; results carry it and are never mixed across it."""


def __getattr__(name: str) -> Any:
    """Load what `stcsim.api` offers when it is first asked for: importing stcsim stays cheap (PEP 562)."""
    if name in ("gemm", "run_study", "simulate"):
        from stcsim import api

        return getattr(api, name)
    message = f"module 'stcsim' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
