// One SpWMMA step by step: 32 x 32 x 16, A five eighths full, B half, three steps of k taken apart by hand.
// Run it with --trace to see the predicates, the outer products that are skipped, and where products land.
//
// Memory holds what the two-level bitmap encoding stores of a tile: A's bitmap words (one a column), B's
// (one a row), then the non-zeros, A's column by column and B's row by row.
//
// Expected: S0 = what the steps k = 0, 1, 2 add: A[:, 0:3] B[0:3, :]. S1 = the whole A B, by SpWMMA.
// First row of S1:
//   64 130 103 96 33 49 29 73 56 96 54 74 110 89 39 86 98 58 162 108 4 45 85 54 56 6 75 50 51 44 44 106
// and the sum of all its elements is 115538. Of the first three columns of A 18, 19, 23, of the first three
// rows of B 16, 14, 14 are non-zero: 9 of the 24 OHMMAs execute.

.shared 4096
.matrix A fp16 32x16 = integers(1, 9, 62, 3)
.matrix B fp16 16x32 = integers(1, 9, 48, 4)
.place A shared[0x000] bits_columns
.place B shared[0x040] bits_rows
.place A shared[0x400] packed_columns
.place B shared[0x800] packed_rows
.show S0 ACC0 32x32
.show S1 ACC1 32x32

    // Loads: lane l takes word l. One register holds A's 16 bitmap words and B's 16.
    S2R R0, SR_LANEID
    SHL R0, R0, 2
    LDS R1, [R0]
    LDS R8, [R0 + 0x400]
    LDS R9, [R0 + 0x480]
    LDS R10, [R0 + 0x500]
    LDS R11, [R0 + 0x580]
    LDS R12, [R0 + 0x600]
    LDS R13, [R0 + 0x680]
    LDS R14, [R0 + 0x700]
    LDS R15, [R0 + 0x780]
    LDS R16, [R0 + 0x800]
    LDS R17, [R0 + 0x880]
    LDS R18, [R0 + 0x900]
    LDS R19, [R0 + 0x980]
    LDS R20, [R0 + 0xa00]
    LDS R21, [R0 + 0xa80]
    LDS R22, [R0 + 0xb00]
    LDS R23, [R0 + 0xb80]

    // Ones of all 32 words at once, then the predicates: Pi, lane k (j = 0) and lane 16 + k (j = 1).
    POPC R2, R1
    OSETP.8161 P0, R2, R2, 0, 0
    OSETP.8161 P1, R2, R2, 1, 0
    OSETP.8161 P2, R2, R2, 2, 0
    OSETP.8161 P3, R2, R2, 3, 0

    // Step k = 0: where products will land, then 4 x 2 groups of 8 by 16
    BOHMMA.32321 R24, R1, R1, 0
    @P0 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 0, 0
    @P0 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 0, 1
    @P1 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 1, 0
    @P1 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 1, 1
    @P2 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 2, 0
    @P2 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 2, 1
    @P3 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 3, 0
    @P3 OHMMA.8161 ACC0, R8, R16, R1, R1, 0, 3, 1
    // Step k = 1: where products will land, then 4 x 2 groups of 8 by 16
    BOHMMA.32321 R24, R1, R1, 1
    @P0 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 0, 0
    @P0 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 0, 1
    @P1 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 1, 0
    @P1 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 1, 1
    @P2 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 2, 0
    @P2 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 2, 1
    @P3 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 3, 0
    @P3 OHMMA.8161 ACC0, R8, R16, R1, R1, 1, 3, 1
    // Step k = 2: where products will land, then 4 x 2 groups of 8 by 16
    BOHMMA.32321 R24, R1, R1, 2
    @P0 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 0, 0
    @P0 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 0, 1
    @P1 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 1, 0
    @P1 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 1, 1
    @P2 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 2, 0
    @P2 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 2, 1
    @P3 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 3, 0
    @P3 OHMMA.8161 ACC0, R8, R16, R1, R1, 2, 3, 1

    // The same and all further steps in one warp-level instruction, into another tile.
    SpWMMA ACC1, R8, R16, R1, R1, R26, R28
    EXIT
