"""The accesses of one outer product to a grid of accumulator banks, a vector of them an instruction.

Place in the data flow: the innermost statement of `stcsim.machine.kernels.outer_slab`, which has the arrays and
knows what a bank's time means.  Written in vectors of LLVM, since its own vectorizer leaves the plain loop
scalar (the arrays may overlap for all that it knows): 8 instead of 70 ns for 128 banks.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

BANK_BLOCK = 16
"""Banks of a vector: as many columns of the grid, as 32-bit cycles; narrower machines take it in pieces."""

_CYCLE, _COUNT = ir.IntType(32), ir.IntType(8)
_CYCLES, _COUNTS = ir.VectorType(_CYCLE, BANK_BLOCK), ir.VectorType(_COUNT, BANK_BLOCK)


def _everywhere(builder, value):
    """Return a vector with the same 32 bits in each lane."""
    undefined, first = ir.Constant(_CYCLES, ir.Undefined), ir.Constant(_CYCLE, 0)
    alone = builder.insert_element(undefined, value, first)
    return builder.shuffle_vector(alone, undefined, ir.Constant(_CYCLES, [0] * BANK_BLOCK))


def _larger(builder, a, b):
    return builder.select(builder.icmp_signed(">", a, b), a, b)


@intrinsic
def send_accesses(typing_context, free, at, n_rows, rows, row_at, columns, column_at, now):
    """Send ``rows[i] * columns[j]`` accesses to each bank (i, j) of a block and return when the last is free.

    ``free[bank] = max(free[bank], now) + accesses``, the rule of `stcsim.machine.outer_reference`.

    Parameters
    ----------
    free : ndarray of int32, contiguous
        When each bank is free, in cycles; from element `at` on, `n_rows` x `BANK_BLOCK` of them are a block.
    rows, columns : ndarray of uint8, contiguous
        Accesses of each class of row, `n_rows` from element `row_at` on, and of each class of column,
        `BANK_BLOCK` from element `column_at` on.
    now : int32

    Returns
    -------
    latest : int32
        The largest of ``free`` in the block, at least `now`.

    Notes
    -----
    As everywhere in jitted code nothing is checked: the caller's shapes must hold what is asked for.
    """
    signature = types.int32(free, at, n_rows, rows, row_at, columns, column_at, now)

    def generate(context, builder, signature, arguments):
        def element(number, index):
            """Return where an element of an argument is."""
            array = context.make_array(signature.args[number])(context, builder, arguments[number])
            return builder.gep(array.data, [index])

        _, at, n_rows, _, row_at, _, column_at, now = arguments
        counts_at = builder.bitcast(element(5, column_at), _COUNTS.as_pointer())
        counts = builder.zext(builder.load(counts_at, align=1), _CYCLES)
        present = _everywhere(builder, now)
        latest = cgutils.alloca_once_value(builder, present)
        block, times_at = element(0, at), element(3, row_at)
        with cgutils.for_range(builder, n_rows) as row:
            first = builder.mul(row.index, ir.Constant(row.index.type, BANK_BLOCK))
            banks_at = builder.bitcast(builder.gep(block, [first]), _CYCLES.as_pointer())
            times = builder.zext(builder.load(builder.gep(times_at, [row.index])), _CYCLE)
            banks = _larger(builder, builder.load(banks_at, align=4), present)
            banks = builder.add(banks, builder.mul(_everywhere(builder, times), counts))
            builder.store(banks, banks_at, align=4)
            builder.store(_larger(builder, banks, builder.load(latest)), latest)
        largest = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_CYCLE, [_CYCLES]), f"llvm.vector.reduce.smax.v{BANK_BLOCK}i32"
        )
        return builder.call(largest, [builder.load(latest)])

    return signature, generate
