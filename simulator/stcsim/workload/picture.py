"""A picture as the input of an image network: resized, cut to the middle, scaled.

Used while a model is captured.  How a network wants its pictures is part of the network; the ways
here are the usual ones, by name.  Needs the package Pillow.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import Problem, WorkloadError, must
from stcsim.workload.extra import optional


@dataclass(frozen=True)
class Preparation:
    """One way to prepare a picture.

    Parameters
    ----------
    summary : str
    is_square : bool
        Whether both sides are resized to 256 / 224 of the input's, or only the shorter one to its.
    is_bgr : bool
        Whether channels go blue, green, red.
    scale : float
        What values of 0 to 255 are multiplied by.
    mean, deviation : tuple of float
        Subtracted, then divided by, for each channel.
    """

    summary: str
    is_square: bool = False
    is_bgr: bool = False
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    deviation: tuple[float, ...] = (1.0, 1.0, 1.0)


PREPARATIONS = {
    "imagenet": Preparation(
        "RGB, 0 to 1, less (0.485, 0.456, 0.406), by (0.229, 0.224, 0.225)",
        scale=1 / 255,
        mean=(0.485, 0.456, 0.406),
        deviation=(0.229, 0.224, 0.225),
    ),
    "caffe": Preparation(
        "BGR, 0 to 255, less (104, 117, 123)", is_square=True, is_bgr=True, mean=(104, 117, 123)
    ),
    "unit": Preparation("RGB, 0 to 1", scale=1 / 255),
    "raw": Preparation("RGB, 0 to 255"),
}
"""Ways by name.  Sources: torchvision.transforms (imagenet), the BVLC reference models (caffe)."""

_MARGIN = 256 / 224
"""Size of the resized picture over that of the piece that is cut out of its middle."""


def load_picture(
    path: str | os.PathLike[str], dims: tuple[int | None, ...], preparation: str
) -> NDArray[np.float32]:
    """Return a picture as the input of a network.

    Parameters
    ----------
    path : str or path-like
    dims : tuple of int or None
        Shape of the input: (N, C, H, W) or (N, H, W, C) with C of 1 or 3; N may be unknown and becomes 1.
    preparation : str
        One of `PREPARATIONS`.

    Returns
    -------
    input : ndarray of float32

    Raises
    ------
    WorkloadError
        If the picture cannot be read, or the input is not one for a picture.
    """
    file = os.fspath(path)
    if len(dims) != 4 or dims[0] not in (None, 1) or not ({1, 3} & {dims[1], dims[3]}):
        shown = f"({', '.join('?' if size is None else str(size) for size in dims)})"
        message = must("a picture needs an input of the shape (1, 1 or 3, H, W) or (1, H, W, 1 or 3)", shown)
        raise WorkloadError(Problem(message, file))
    channels_first = dims[1] in (1, 3)
    channels, height, width = (dims[1], dims[2], dims[3]) if channels_first else (dims[3], dims[1], dims[2])
    if not height or not width:
        message = "a picture needs to know how large the input is: give --input-shape"
        raise WorkloadError(Problem(message, file))
    way = PREPARATIONS[preparation]
    pixels = _pixels(file, height, width, is_grey=channels == 1, is_square=way.is_square)
    if way.is_bgr:
        pixels = pixels[..., ::-1]
    mean, deviation = (np.array(one[: channels or 3], np.float32) for one in (way.mean, way.deviation))
    prepared = (pixels * np.float32(way.scale) - mean) / deviation
    return np.ascontiguousarray(np.moveaxis(prepared, -1, 0) if channels_first else prepared)[np.newaxis]


def _pixels(file: str, height: int, width: int, *, is_grey: bool, is_square: bool) -> NDArray[np.float32]:
    """Return the middle of the resized picture: shape (height, width, channels), 0 to 255."""
    images = optional("PIL.Image", "trace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", images.DecompressionBombWarning)
            with images.open(file) as picture:
                plain = picture.convert("L" if is_grey else "RGB")
    except (OSError, ValueError, SyntaxError, images.DecompressionBombError, images.DecompressionBombWarning):
        message = "must be a .npy array or a picture that can be read"
        raise WorkloadError(Problem(message, file)) from None
    wide, high = round(width * _MARGIN), round(height * _MARGIN)
    if not is_square:
        scale = max(wide / plain.width, high / plain.height)
        wide, high = max(wide, round(plain.width * scale)), max(high, round(plain.height * scale))
    left, top = (wide - width) // 2, (high - height) // 2
    resized = plain.resize((wide, high), resample=images.Resampling.BILINEAR)
    cut = np.asarray(resized.crop((left, top, left + width, top + height)), dtype=np.float32)
    return cut[..., np.newaxis] if is_grey else cut
