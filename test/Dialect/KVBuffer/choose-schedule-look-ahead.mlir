// Whoever asks for early look-ups of pages gets no turns of the chip's choice, which
// would leave nothing for them to do. Where keys are split a chip chooses look-ups by
// itself; one slot leaves it none.

// DEFINE: %{schedule} =
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=%{schedule}"

// REDEFINE: %{schedule} = lazy_rescale=true
// RUN: %{run} | FileCheck %s --check-prefix=TURNS
// TURNS: teams = halves{{.*}} ahead = scores

// REDEFINE: %{schedule} = look_ahead=true
// RUN: %{run} | FileCheck %s --check-prefix=LOOKS --implicit-check-not=halves --implicit-check-not='ahead = scores'
// LOOKS: #kvbuffer.schedule<{{.*}}look_ahead = true

// REDEFINE: %{schedule} = split_keys=true
// RUN: %{run} | FileCheck %s --check-prefix=SPLIT
// SPLIT: work = split_keys{{.*}} ahead = loads<look_ahead = true>

// REDEFINE: %{schedule} = split_keys=true,stages=1
// RUN: %{run} | FileCheck %s --check-prefix=ONESLOT --implicit-check-not=look_ahead
// ONESLOT: stages = 1{{.*}} work = split_keys

// What is refused beside split keys is refused for that.
// REDEFINE: %{schedule} = split_keys=true,overlap=true
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=AHEAD
// AHEAD: split_keys = true goes with none of overlap

!qo = memref<?x?x8x128xbf16>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
