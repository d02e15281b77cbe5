"""What one warp's instructions read and write: registers, predicates, memory, accumulators.

Values only; no clock, no queue of a pipeline.  Asynchronous copies are the one thing that is
kept back: their bytes land in shared memory when DEPBAR has waited for them, so that a program
that forgets to wait reads the old bytes, as it would on the machine.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import IsaError, must
from stcsim.isa.operand import TRUE_PREDICATE, ZERO_REGISTER, Accumulator, Address, Register

LANES = 32
"""Threads of a warp."""
_NO_WORDS: NDArray[np.uint32] = np.zeros(64 * LANES, dtype=np.uint32)
_NO_WORDS.setflags(write=False)

Copy = tuple[NDArray[np.intp], NDArray[np.uint8]]
"""An asynchronous copy under way: shared-memory byte indices, and the bytes bound for them."""


class WarpState:
    """The architectural state of one warp.

    Parameters
    ----------
    shared : ndarray of uint8, shape (n_bytes,)
        Shared memory, C-contiguous, a multiple of 4 bytes; used in place, so that several warps
        may share one array.
    n_registers : int
        Registers per thread, at most 256 (the last, RZ, is not one of them).
    n_accumulator_tiles : int
        Tiles of the DSTC accumulator buffer that the warp may name.
    m_warp, n_warp : int
        Edges of an accumulator tile.
    memory : ndarray of uint8, shape (n_bytes,), optional
        Global memory, used in place; none by default.

    Attributes
    ----------
    registers : ndarray of uint32, shape (n_registers, 32)
        One row per register, one column per lane.
    predicates : ndarray of bool, shape (8, 32)
        Row 7 is PT.
    accumulators : ndarray of float32, shape (n_accumulator_tiles, m_warp, n_warp)
    shared, memory : ndarray of uint8
    pc : int
        Index of the next instruction of a program; branches set it.
    exited : bool
        Whether EXIT was executed.
    """

    def __init__(
        self,
        shared: NDArray[np.uint8],
        n_registers: int = 256,
        n_accumulator_tiles: int = 4,
        *,
        m_warp: int = 32,
        n_warp: int = 32,
        memory: NDArray[np.uint8] | None = None,
    ) -> None:
        self.shared = shared
        self.memory = np.zeros(0, dtype=np.uint8) if memory is None else memory
        self.n_registers = n_registers
        self.registers = np.zeros((n_registers, LANES), dtype=np.uint32)
        self.predicates = np.zeros((TRUE_PREDICATE + 1, LANES), dtype=np.bool_)
        self.predicates[TRUE_PREDICATE] = True
        self.accumulators = np.zeros((n_accumulator_tiles, m_warp, n_warp), dtype=np.float32)
        self.pc = 0
        self.exited = False
        self.open_copies: list[Copy] = []
        self.copy_groups: deque[list[Copy]] = deque()
        self._words = self.registers.reshape(-1)
        self._space_words = {"shared": self.shared.view(np.uint32), "global": self.memory.view(np.uint32)}

    def words(self, register: Register, count: int = 1) -> NDArray[np.uint32]:
        """Return `count` consecutive registers as one flat run of words, register by register.

        Parameters
        ----------
        register : Register
        count : int

        Returns
        -------
        words : ndarray of uint32, shape (count * 32,)
            Word ``32 * r + lane``; a view to read from, zeros for RZ.

        Raises
        ------
        IsaError
            If the state has fewer registers.
        """
        first = register.index
        last = first + count
        if last <= self.n_registers and first != ZERO_REGISTER:
            return self._words[first * LANES : last * LANES]
        if first == ZERO_REGISTER:
            return _NO_WORDS[: count * LANES]
        raise IsaError(must(f"register must be below R{self.n_registers}", f"R{last - 1}"))

    def sums(self, tile: Accumulator) -> NDArray[np.float32]:
        """Return an accumulator tile, a view.

        Parameters
        ----------
        tile : Accumulator

        Returns
        -------
        sums : ndarray of float32, shape (m_warp, n_warp)

        Raises
        ------
        IsaError
            If the state has fewer tiles.
        """
        if tile.index >= len(self.accumulators):
            raise IsaError(must(f"accumulator must be below ACC{len(self.accumulators)}", tile))
        kept: NDArray[np.float32] = self.accumulators[tile.index]
        return kept

    def write(self, register: Register, words: NDArray[Any], active: NDArray[np.bool_] | None = None) -> None:
        """Write consecutive registers; nothing happens to RZ.

        Parameters
        ----------
        register : Register
            The first one.
        words : ndarray of uint32, size (count * 32)
            Word ``32 * r + lane``, in any shape.
        active : ndarray of bool, shape (32,), optional
            Lanes that write; all by default.
        """
        if register.index == ZERO_REGISTER:
            return
        flat = words.reshape(-1)
        kept = self.words(register, flat.size // LANES)
        if active is None:
            kept[:] = flat
        else:
            np.copyto(kept.reshape(-1, LANES), flat.reshape(-1, LANES), where=active)

    def word_indices(
        self, address: Address, n_bytes: int, space: str, active: NDArray[np.bool_] | None
    ) -> NDArray[np.intp]:
        """Return where each lane's access starts, as an index of a 32-bit word.

        Parameters
        ----------
        address : Address
        n_bytes : int
            Bytes that one lane touches; the address must be a multiple of them.
        space : "shared" or "global"
        active : ndarray of bool, shape (32,), optional
            Lanes that take part; the others' addresses are not looked at and read as 0.

        Returns
        -------
        indices : ndarray of intp, shape (32,)

        Raises
        ------
        IsaError
            If a lane that takes part is misaligned or outside the memory.
        """
        base = address.register
        if base is None:
            addresses = np.full(LANES, address.offset, dtype=np.intp)
        else:
            addresses = self.words(base).astype(np.intp)
            addresses += address.offset
        if active is not None:
            addresses[~active] = 0
        size = (self.shared if space == "shared" else self.memory).size
        crooked = int(np.bitwise_or.reduce(addresses)) & (n_bytes - 1)
        if crooked or int(addresses.max()) + n_bytes > size or int(addresses.min()) < 0:
            self._refuse(addresses, n_bytes, space, size)
        addresses >>= 2
        return addresses

    def memory_words(self, space: str) -> NDArray[np.uint32]:
        """Return a memory as 32-bit words, a view (space: "shared" or "global")."""
        return self._space_words[space]

    @staticmethod
    def _refuse(addresses: NDArray[np.intp], n_bytes: int, space: str, size: int) -> None:
        for lane, address in enumerate(addresses.tolist()):
            if address % n_bytes or not 0 <= address <= size - n_bytes:
                what = f"lane {lane}: {space} address must be a multiple of {n_bytes} below {hex(size)}"
                raise IsaError(must(what, hex(address)))
