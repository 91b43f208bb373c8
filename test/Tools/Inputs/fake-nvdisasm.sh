#!/bin/sh
# Stands in for nvdisasm: what it prints of a kernel with a loop over products.
[ -n "${FAKE_NVDISASM_FAILS:-}" ] && exit 3
cat <<'SASS'
	.target	sm_80
//--------------------- .text.exp2   --------------------------
	.section	.text.exp2,"ax",@progbits
        .global         exp2
exp2:
.text.exp2:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/                   ULDC.64 UR4, c[0x0][0x118] ;
.L_x_0:
        /*0030*/                   LDGSTS.E.BYPASS.128 [R2], [R4.64] ;
        /*0040*/                   LDGDEPBAR ;
        /*0050*/                   DEPBAR.LE SB0, 0x1 ;
        /*0060*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0070*/                   LDSM.16.M88.4 R8, [R6] ;
        /*0080*/                   HMMA.16816.F32.BF16 R12, R8, R10, R12 ;
        /*0090*/                   HMMA.16816.F32.BF16 R16, R8, R11, R16 ;
.L_x_1:
        /*00a0*/                   IADD3 R20, R20, 0x1, RZ ;
        /*00b0*/              @!P1 BRA `(.L_x_1) ;
        /*00c0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00d0*/                   MUFU.EX2 R13, R12 ;
        /*00e0*/                   FFMA R14, R13, R14, R15 ;
        /*00f0*/                   F2FP.BF16.PACK_AB R14, R14, R15 ;
        /*0100*/               @P0 BRA `(.L_x_0) ;
        /*0110*/                   STL [R1], R14 ;
        /*0120*/                   STG.E desc[UR4][R2.64], R14 ;
        /*0130*/                   EXIT ;
.L_x_2:
        /*0140*/                   BRA `(.L_x_2);
        /*0150*/                   NOP;
.L_x_3:
SASS
