"""stcsim: a cycle-level simulator of sparse tensor cores.

Data flows one way: isa, config -> workload -> formats -> lowering -> machine ->
result -> report; `stcsim.study`, `stcsim.api` and `stcsim.cli` stand above.
"""

from __future__ import annotations

__version__ = "0.1.0"
MODEL_VERSION = 1
"""Raised whenever a cycle count can change; results carry it and are never mixed across it."""
