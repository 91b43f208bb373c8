	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.globl sum
	.p2align 8
	.type sum,@function
sum:
	v_mfma_f32_16x16x16_bf16 v[40:43], v[48:49], v[50:51], v[40:43]
	s_nop STATES
	v_add_f32 v44, v41, v45
	s_endpgm
.Lend:
	.size sum, .Lend-sum
	.rodata
	.p2align 6
	.amdhsa_kernel sum
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 64
		.amdhsa_private_segment_fixed_size SCRATCH
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:           []
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 0
    .max_flat_workgroup_size: 256
    .name:           sum
    .private_segment_fixed_size: SCRATCH
    .sgpr_count:     16
    .sgpr_spill_count: 0
    .symbol:         sum.kd
    .vgpr_count:     64
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
