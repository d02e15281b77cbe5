// 16 x 16 x 16 on Ampere: D = A B + C, D and C 16 x 16, by two HMMA.16816 (one for each 8 columns of B).
// A comes from shared memory through LDSM, as a kernel would load it; B's columns are loaded by LDSM too,
// transposed, since B lies row by row.
//
// Expected: D0 = A B of columns 0..7, D1 of columns 8..15, with C = 0. A[m,k] = (m == k) + 2 (m == k + 1),
// so row m of A B is B[m] + 2 B[m - 1]; B[k,n] = 16 k + n - 100 gives row 0: -100 -99 .. -85, row 1:
// -84 + 2 (-100) = -284, -281, -278 .. -239 (steps of 3), and so on: row m (m > 0) = 48 m - 332 + 3 n.

.shared 1024
.matrix A fp16 16x16 = [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0; 2 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0; 0 2 1 0 0 0 0 0 0 0 0 0 0 0 0 0; 0 0 2 1 0 0 0 0 0 0 0 0 0 0 0 0; 0 0 0 2 1 0 0 0 0 0 0 0 0 0 0 0; 0 0 0 0 2 1 0 0 0 0 0 0 0 0 0 0; 0 0 0 0 0 2 1 0 0 0 0 0 0 0 0 0; 0 0 0 0 0 0 2 1 0 0 0 0 0 0 0 0; 0 0 0 0 0 0 0 2 1 0 0 0 0 0 0 0; 0 0 0 0 0 0 0 0 2 1 0 0 0 0 0 0; 0 0 0 0 0 0 0 0 0 2 1 0 0 0 0 0; 0 0 0 0 0 0 0 0 0 0 2 1 0 0 0 0; 0 0 0 0 0 0 0 0 0 0 0 2 1 0 0 0; 0 0 0 0 0 0 0 0 0 0 0 0 2 1 0 0; 0 0 0 0 0 0 0 0 0 0 0 0 0 2 1 0; 0 0 0 0 0 0 0 0 0 0 0 0 0 0 2 1]
.matrix B fp16 16x16 = [-100 -99 -98 -97 -96 -95 -94 -93 -92 -91 -90 -89 -88 -87 -86 -85; -84 -83 -82 -81 -80 -79 -78 -77 -76 -75 -74 -73 -72 -71 -70 -69; -68 -67 -66 -65 -64 -63 -62 -61 -60 -59 -58 -57 -56 -55 -54 -53; -52 -51 -50 -49 -48 -47 -46 -45 -44 -43 -42 -41 -40 -39 -38 -37; -36 -35 -34 -33 -32 -31 -30 -29 -28 -27 -26 -25 -24 -23 -22 -21; -20 -19 -18 -17 -16 -15 -14 -13 -12 -11 -10 -9 -8 -7 -6 -5; -4 -3 -2 -1 0 1 2 3 4 5 6 7 8 9 10 11; 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27; 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43; 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59; 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75; 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91; 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107; 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123; 124 125 126 127 128 129 130 131 132 133 134 135 136 137 138 139; 140 141 142 143 144 145 146 147 148 149 150 151 152 153 154 155]
.place A shared[0x000] rows
.place B shared[0x200] rows
.show D0 R16 c HMMA.16816.F32
.show D1 R20 c HMMA.16816.F32

    S2R R0, SR_LANEID
    // Address of row (lane % 16), columns 0..7 (lanes below 16) or 8..15: 32 bytes a row, 16 a half.
    LOP3 R1, R0, 15, RZ, 0xC0       // lane and 15
    SHL R1, R1, 5
    LOP3 R2, R0, 16, RZ, 0xC0       // lane and 16: the second half is 16 bytes on
    IADD3 R3, R1, R2, RZ
    // A: matrices in the order of the fragment: rows 0..7 and 8..15 of k 0..7, then of k 8..15.
    LDSM.X4 R4, [R3]
    // B, transposed: k 0..7 and 8..15 of columns 0..7 (R8, R9), then of columns 8..15 (R10, R11).
    LDSM.X4.TRANS R8, [R3 + 0x200]
    HMMA.16816.F32 R16, R4, R8, RZ
    HMMA.16816.F32 R20, R4, R10, RZ
    EXIT
