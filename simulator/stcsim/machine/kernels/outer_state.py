"""The layout of the fast outer-product engine's arrays: state of warps and sub-cores, parameters, counters.

Place in the data flow: shared by the modules `stcsim.machine.kernels.outer*`.  Jitted code takes arrays of whole
numbers and no objects; here stands which column is what.
"""

from __future__ import annotations

import numpy as np

from stcsim.machine.outer_record import MILLI, Buffer, OuterCounter

NEVER = np.int64(2**62)
MILLI_CYCLES = np.int64(MILLI)
FAR = np.int64(2**30)
WORDS, BANKED = int(Buffer.WORDS), int(Buffer.BANKED)
BUSY, CONFLICT, ISSUE = (
    int(OuterCounter.TENSOR_BUSY), int(OuterCounter.ACCUMULATOR_CONFLICT), int(OuterCounter.ISSUE),
)  # fmt: skip
DEPENDENCY, SHARED, BARRIER = (
    int(OuterCounter.DEPENDENCY), int(OuterCounter.SHARED_MEMORY), int(OuterCounter.BARRIER),
)  # fmt: skip
PROLOGUE, EPILOGUE, IMBALANCE = (
    int(OuterCounter.PROLOGUE), int(OuterCounter.EPILOGUE), int(OuterCounter.IMBALANCE),
)  # fmt: skip
CYCLES, OHMMA, PRODUCTS = int(OuterCounter.CYCLES), int(OuterCounter.OHMMA), int(OuterCounter.PRODUCTS)
LOADS, WAVEFRONTS = int(OuterCounter.LOADS), int(OuterCounter.WAVEFRONTS)
POPC, SLABS = int(OuterCounter.POPC), int(OuterCounter.SLABS)

# Columns of the state of a warp: one row for each place of each sub-core.
AGE, STARTED, C_READY, RELEASED, ARRIVED, FINISHED, DONE = 0, 1, 2, 3, 4, 5, 6
TILE_M, TILE_N, TILE_WORDS, CURRENT, NEXT, STEP, REPETITION = 7, 8, 9, 10, 11, 12, 13
READY, LATE, NEXT_READY, NEXT_LATE, FETCH_AT = 14, 15, 16, 17, 18
N_WARP = 19

# Columns of the state of a sub-core.
LOCAL, ACCOUNTED, LAST, PIPE, PORT, INTEGER, FILL, DRAIN = 0, 1, 2, 3, 4, 5, 6, 7
FRONT_CYCLE, FRONT_MILLI, BUFFER_CYCLE, BUFFER_WORD, RING, ORIGIN = 8, 9, 10, 11, 12, 13
N_SUB_CORE = 14

# Places of the parameters in the model vector; `stcsim.machine.kernels.outer.simulate` fills it in this order.
PARAMETERS = (
    "sub_cores", "resident_ctas", "greedy", "m_inst", "n_inst", "k", "k_slab", "slabs_per_stage",
    "interval_cycles", "latency_cycles", "buffer", "words_per_cycle", "accesses_per_cycle", "window", "step_milli",
    "skipped_milli", "popc_cycles", "popc_latency_cycles", "popc_instructions", "shared_issue",
    "load_wavefront_cycles", "load_latency_cycles", "bitmap_wavefronts", "bitmap_loads", "element_bytes",
    "load_c_words_per_cycle", "drain_words_per_cycle", "barrier_base_cycles", "barrier_warp_cycles",
    "grid_a", "grid_b", "slabs",
)  # fmt: skip
(
    P_SUB_CORES, P_RESIDENT, P_GREEDY, P_M_INST, P_N_INST, P_K, P_K_SLAB, P_STAGE,
    P_INTERVAL, P_LATENCY, P_BUFFER, P_WORDS, P_ACCESSES, P_WINDOW, P_STEP,
    P_SKIPPED, P_POPC, P_POPC_LATENCY, P_POPC_N, P_SHARED_ISSUE,
    P_WAVEFRONT, P_LOAD_LATENCY, P_BITMAP_WAVEFRONTS, P_BITMAP_LOADS, P_BYTES,
    P_LOAD_C, P_DRAIN, P_BARRIER, P_BARRIER_WARP, P_GRID_A, P_GRID_B, P_SLABS,
) = range(len(PARAMETERS))  # fmt: skip
