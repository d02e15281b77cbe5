"""Ways to lower a feature map, and what each takes of the integer pipes and of memory.

For a study that compares them; beside the tensor work, not in it.  All are ASSUMED
instruction counts of our own, per element or word, stated below; the published claim is
only that a naive implicit im2col of a sparse map is 10 to 100 times slower than the dense one
(notes on Wang et al., ISCA 2021).

* ``dense_implicit``: every CTA gathers its windows; an access moves 8 channels of one input element
  (16 bytes of fp16, channels innermost) and takes one address (IADD3), two bounds (ISETP) and their LOP3.
* ``dense_explicit``: the same accesses once, and an address for each store; the lowered matrix is written
  and read back (`extra_bytes`).
* ``bitmap``: `stcsim.lowering.bitmap_im2col`, repeated by every CTA that wants the columns.
* ``csr``: the map's rows hold column indices.  For every output pixel, channel and filter row the window's
  first non-zero is found by binary search, ceil(log2(ones + 1)) steps of IADD3, ISETP and SEL, and the
  window's non-zeros and the one behind are compared (ISETP), placed (IADD3) and masked (LOP3) one by one.

Knows no machine but the rates it is given.
"""

from __future__ import annotations

import numpy as np

from stcsim.lowering import bitmap_im2col
from stcsim.lowering.instruction_mix import InstructionMix
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.pattern import Pattern

METHODS = ("bitmap", "dense_implicit", "dense_explicit", "csr")
"""Every way to lower, by name."""
_VECTOR = 8
"""Channels of one access: 16 bytes of fp16 (the widest access of a lane, CUDA programming guide)."""
_ACCESS = InstructionMix(IADD3=1, ISETP=2, LOP3=1)
_STORE = InstructionMix(IADD3=1)
_SEARCH_STEP = InstructionMix(IADD3=1, ISETP=1, SEL=1)
_SCAN_STEP = InstructionMix(ISETP=1, IADD3=1, LOP3=1)


def mix(method: str, conv: ConvShape, feature_map: Pattern, passes: int = 1) -> InstructionMix:
    """Return the lane operations of lowering a feature map.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    conv : ConvShape
    feature_map : Pattern, shape (N * C, H * W)
        Read by ``csr`` alone: only there does the work depend on the zeros.
    passes : int
        CTAs along the output channels, each of which lowers anew (all but ``dense_explicit``).
    """
    accesses = conv.pixels * conv.r * conv.s * conv.groups * -(-conv.c_group // _VECTOR)
    if method == "bitmap":
        return bitmap_im2col.mix(conv) * passes
    if method == "dense_implicit":
        return _ACCESS * accesses * passes
    if method == "dense_explicit":
        return (_ACCESS + _STORE) * accesses
    return _csr(conv, feature_map) * passes


def _csr(conv: ConvShape, feature_map: Pattern) -> InstructionMix:
    """Return the operations of searching and scanning rows of column indices."""
    ones = feature_map.group_counts(1, conv.w).reshape(conv.n * conv.c, conv.h).astype(np.int64)
    steps = np.ceil(np.log2(ones + 1)).astype(np.int64).sum(axis=0)
    row_ones = ones.sum(axis=0)
    searches = scanned = 0
    for r in range(conv.r):
        y = np.arange(conv.p) * conv.stride[0] - conv.padding[0] + r * conv.dilation[0]
        y = y[(y >= 0) & (y < conv.h)]
        searches += int(steps[y].sum()) * conv.q
        # A window spans S dilated columns of the row's W; its share of the row's non-zeros, and the one behind.
        span = min(conv.w, conv.dilation[1] * (conv.s - 1) + 1)
        scanned += -(-int(row_ones[y].sum()) * conv.q * span // conv.w) + len(y) * conv.q * conv.n * conv.c
    return _SEARCH_STEP * searches + _SCAN_STEP * scanned


def extra_bytes(method: str, conv: ConvShape, element_bytes: int) -> int:
    """Return the bytes that are written and read back: the lowered matrix of ``dense_explicit``, else none."""
    if method != "dense_explicit":
        return 0
    return 2 * conv.pixels * conv.taps * conv.groups * element_bytes
