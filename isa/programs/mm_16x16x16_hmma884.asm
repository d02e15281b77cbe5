// 16 x 16 x 16 on Volta: 16 HMMA.884, four sets (k-slices of 4) of four steps. A step adds 2 x 4 by 4 x 4 in
// every thread group; four octets of lanes each own 8 x 8 of D and hold their own copies of A and B.
//
// Expected: D = A B, of the same A and B as in mm_16x16x16_owmma.asm. Its first row is
//   -12 -31 -1 -47 -4 -20 0 16 0 49 22 43 -8 60 -6 13
// and the sum of all its elements is 193.

.matrix A fp16 16x16 = integers(-4, 4, 100, 1)
.matrix B fp16 16x16 = integers(-4, 4, 100, 2)
.place A R4 a HMMA.884.F32.F32.STEP0       // four sets: R4 R6 R8 R10
.place B R12 b HMMA.884.F32.F32.STEP0      // four sets: R12 R14 R16 R18
.show D R24 c HMMA.884.F32.F32.STEP0

    // SET0: k = 0..3
    HMMA.884.F32.F32.STEP0 R24, R4, R12, R24
    HMMA.884.F32.F32.STEP1 R26, R4, R12, R26
    HMMA.884.F32.F32.STEP2 R28, R4, R12, R28
    HMMA.884.F32.F32.STEP3 R30, R4, R12, R30
    // SET1: k = 4..7
    HMMA.884.F32.F32.STEP0 R24, R6, R14, R24
    HMMA.884.F32.F32.STEP1 R26, R6, R14, R26
    HMMA.884.F32.F32.STEP2 R28, R6, R14, R28
    HMMA.884.F32.F32.STEP3 R30, R6, R14, R30
    // SET2: k = 8..11
    HMMA.884.F32.F32.STEP0 R24, R8, R16, R24
    HMMA.884.F32.F32.STEP1 R26, R8, R16, R26
    HMMA.884.F32.F32.STEP2 R28, R8, R16, R28
    HMMA.884.F32.F32.STEP3 R30, R8, R16, R30
    // SET3: k = 12..15
    HMMA.884.F32.F32.STEP0 R24, R10, R18, R24
    HMMA.884.F32.F32.STEP1 R26, R10, R18, R26
    HMMA.884.F32.F32.STEP2 R28, R10, R18, R28
    HMMA.884.F32.F32.STEP3 R30, R10, R18, R30
    EXIT
