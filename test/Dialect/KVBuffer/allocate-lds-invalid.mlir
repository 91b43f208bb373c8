// Places that the program gives must not make buffers share what both use.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-allocate-lds)))"

#buf = #kvbuffer.kv_buffer<64x64xbf16>
!tile = !kvbuffer.tile<64x64xbf16>
gpu.module @m {
  gpu.func @both(%t: !tile, %i: index) kernel {
    // expected-note @below {{the other buffer is here}}
    %first = kvbuffer.alloc {offset = 0 : i64} : !kvbuffer.buffer<#buf>
    // expected-error @below {{'kvbuffer.alloc' op lies at bytes 4096 to 12288 with a buffer that is in use at the same time; expected a kvbuffer.lds_stage or kvbuffer.meet between the last use of one and the first of the other}}
    %second = kvbuffer.alloc {offset = 4096 : i64} : !kvbuffer.buffer<#buf>
    %t0 = kvbuffer.dram_load %t into %first[%i] : !tile, !kvbuffer.buffer<#buf>
    %t1 = kvbuffer.dram_load %t into %second[%i] : !tile, !kvbuffer.buffer<#buf>
    %s0, %s1 = kvbuffer.lds_stage %t0, %t1 : !kvbuffer.token<#buf>, !kvbuffer.token<#buf>
    gpu.return
  }
}
