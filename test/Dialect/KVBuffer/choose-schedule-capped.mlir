// With a soft cap there are no clusters up to 64 columns. More columns have what they have
// without a cap: clusters without turns.

// RUN: sed 's/SIZE/64/; s/MASK/#kvbuffer.mask<>/' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/SIZE/64/; s/MASK/#kvbuffer.mask<causal = true>/' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/SIZE/128/; s/MASK/#kvbuffer.mask<>/' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/SIZE/128/; s/MASK/#kvbuffer.mask<causal = true>/' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/SIZE/256/; s/MASK/#kvbuffer.mask<>/' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=WIDE
// Without a cap.
// RUN: sed 's/SIZE/128/; s/MASK/#kvbuffer.mask<>/; s/softcap = 30.0 : f32, //' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=WIDE

// NARROW:     #kvbuffer.schedule<
// NARROW-NOT: cluster =
// NARROW:     ping_pong = true
// NARROW-NOT: cluster =
// NARROW:     func.func

// WIDE:       #kvbuffer.schedule<
// WIDE-NOT:   ping_pong
// WIDE-SAME:  cluster = 2

!qo = memref<?x4096x16xSIZExbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 16, head_size = SIZE>
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {softcap = 30.0 : f32, mask = MASK} : !qo, !kv, !kv, !qo
  return
}
