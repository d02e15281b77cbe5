// 16 x 16 x 16 on DSTC: OWMMA, the dense warp-level product, once whole and once taken apart by hand.
// A lies column by column, B row by row; one step of k is two OHMMA.8161 (rows 0..7 and 8..15).
//
// Expected: D (OWMMA) and E (its 32 OHMMAs) both = A B, of the same A and B as in mm_16x16x16_hmma884.asm.
// Their first row is
//   -12 -31 -1 -47 -4 -20 0 16 0 49 22 43 -8 60 -6 13
// and the sum of all their elements is 193.

.matrix A fp16 16x16 = integers(-4, 4, 100, 1)
.matrix B fp16 16x16 = integers(-4, 4, 100, 2)
.place A R8 columns
.place B R16 rows
.show D ACC0 16x16
.show E ACC1 16x16

    OWMMA ACC0, R8, R16, R0
    // The same by hand: with all 16 ones in every bitmap word, nothing is condensed. R1 is named for both
    // operands: its lanes 0..15 are A's words, 16..31 B's.
    MOV R1, 0xFFFF
    OHMMA.8161 ACC1, R8, R16, R1, R1, 0, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 0, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 1, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 1, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 2, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 2, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 3, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 3, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 4, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 4, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 5, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 5, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 6, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 6, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 7, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 7, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 8, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 8, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 9, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 9, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 10, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 10, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 11, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 11, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 12, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 12, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 13, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 13, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 14, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 14, 1, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 15, 0, 0
    OHMMA.8161 ACC1, R8, R16, R1, R1, 15, 1, 0
    EXIT
