// What kvbuffer.staged_fit refuses.
// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

#buf = #kvbuffer.kv_buffer<64x128xf16, BK = 64>
func.func @elements(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{expected a whole slot of bf16, got '!kvbuffer.staged<<64x128xf16, BK = 64>>'}}
  %h, %f = kvbuffer.staged_fit %s : !kvbuffer.staged<#buf> -> !kvbuffer.staged<#buf>, !kvbuffer.fragment<64x1xf32, row>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x128xbf16, BK = 64>
#half = #kvbuffer.kv_buffer<64x128xf16, BK = 64>
func.func @view(%s: !kvbuffer.staged<#buf, 64x64 at [0, 64]>) {
  // expected-error @below {{expected a whole slot of bf16, got}}
  %h, %f = kvbuffer.staged_fit %s : !kvbuffer.staged<#buf, 64x64 at [0, 64]> -> !kvbuffer.staged<#half>, !kvbuffer.fragment<64x1xf32, row>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x128xbf16, BK = 64>
#half = #kvbuffer.kv_buffer<64x64xf16, BK = 64>
func.func @other(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{makes '!kvbuffer.staged<<64x128xf16, BK = 64>>' of the slot, got '!kvbuffer.staged<<64x64xf16>>'}}
  %h, %f = kvbuffer.staged_fit %s : !kvbuffer.staged<#buf> -> !kvbuffer.staged<#half>, !kvbuffer.fragment<64x1xf32, row>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x128xbf16, BK = 64>
#half = #kvbuffer.kv_buffer<64x128xf16, BK = 64>
func.func @factor(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{expected a factor of f32 for each row, got '!kvbuffer.fragment<64x64xf32, acc>'}}
  %h, %f = kvbuffer.staged_fit %s : !kvbuffer.staged<#buf> -> !kvbuffer.staged<#half>, !kvbuffer.fragment<64x64xf32, acc>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<64x128xbf16, BK = 64>
#half = #kvbuffer.kv_buffer<64x128xf16, BK = 64>
func.func @ring(%ring: !kvbuffer.ring<#buf>, %i: index) {
  kvbuffer.teams {
    kvbuffer.team @read warps(4) {
      %s = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#buf>
      // expected-error @below {{changes a slot of a ring; expected one that kvbuffer.lds_stage awaits}}
      %h, %f = kvbuffer.staged_fit %s : !kvbuffer.staged<#buf> -> !kvbuffer.staged<#half>, !kvbuffer.fragment<64x1xf32, row>
    }
  }
  return
}
