// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --kvbuf-choose-schedule=chip=sm_80 --kvbuf-lower-append

!q = tensor<?x?x4x64xbf16>
func.func @attend(%q: !q) -> !q {
  // expected-error @below {{is on tensors; expected memrefs: run one-shot-bufferize first}}
  %r = kvbuffer.attention q(%q) k(%q) v(%q) out(%q) : !q, !q, !q, !q -> !q
  return %r : !q
}

// -----

func.func @append(%k: tensor<2x1x2x64xbf16>, %kc: tensor<2x?x2x64xbf16>, %at: tensor<2xi32>) -> tensor<2x?x2x64xbf16> {
  // expected-error @below {{is on tensors; expected memrefs: run one-shot-bufferize first}}
  %r = kvbuffer.cache_append k(%k : tensor<2x1x2x64xbf16>) to(%kc : tensor<2x?x2x64xbf16>) at(%at : tensor<2xi32>) -> tensor<2x?x2x64xbf16>
  return %r : tensor<2x?x2x64xbf16>
}
