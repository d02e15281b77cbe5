"""Pruning by magnitude: the smallest weights of a layer become zeros, at one stroke and without retraining.

Used while a model is captured.  A network that is pruned and then retrained has its zeros elsewhere,
and other activations; whoever captures says which it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import WorkloadError, must

_SPELLING = "magnitude:SHARE, SHARE of each layer's weights set to zero, such as magnitude:0.8"


@dataclass(frozen=True)
class Magnitude:
    """How many of a layer's weights are set to zero.

    Parameters
    ----------
    share : float
        0 to 1.
    """

    share: float

    @classmethod
    def parse(cls, text: str) -> Magnitude:
        """Return what ``magnitude:0.8`` means.

        Raises
        ------
        WorkloadError
            If it is spelt otherwise; a bare number could mean what is kept as well as what goes.
        """
        kind, colon, number = text.partition(":")
        try:
            share = float(number) if kind == "magnitude" and colon else -1.0
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise WorkloadError(must(f"--prune must be {_SPELLING}", text))
        return cls(share)

    def __str__(self) -> str:
        return f"magnitude:{self.share:g}"

    def kept(self, weights: ArrayLike) -> NDArray[np.bool_]:
        """Return which weights are kept.

        Parameters
        ----------
        weights : array_like, any shape

        Returns
        -------
        kept : ndarray of bool, of the same shape
            round((1 - share) * size) of the largest magnitude, of equal ones those that come first.
        """
        magnitudes: NDArray[Any] = np.abs(np.asarray(weights)).reshape(-1)
        count = round((1 - self.share) * magnitudes.size)
        kept = np.zeros(magnitudes.size, np.bool_)
        kept[np.argsort(-magnitudes, kind="stable")[:count]] = True
        return kept.reshape(np.shape(weights))
