// A 2:4 product on Ampere: HMMA.SP.16832, 16 x 8 x 32 of which A keeps at most two of each four columns.
// A lies in R4..R7 as its stored half, in R20 as metadata (2-bit indices, selector 0).
//
// Expected: D = A B with the whole A, zeros included. First row of D:
//   -150 126 112 -134 -284 -12 -55 46
// and the sum of all its elements is 1947.

.matrix A fp16 16x32 = two_of_four(-9, 9, 5)
.matrix B fp16 32x8 = integers(-9, 9, 100, 6)
.place A R4 a HMMA.SP.16832.F32
.place A R20 e HMMA.SP.16832.F32
.place B R8 b HMMA.SP.16832.F32
.show D R16 c HMMA.SP.16832.F32

    HMMA.SP.16832.F32 R16, R4, R8, RZ, R20, 0
    EXIT
