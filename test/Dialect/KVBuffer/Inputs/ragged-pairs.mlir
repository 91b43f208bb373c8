!qo = memref<?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>
module attributes {kvbuffer.target = "sm_90a"} {
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets)
      {schedule = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232, tiles = dynamic, cluster = 2>}
    : !qo, !kv, !kv, !qo, offsets memref<?xi32>
  return
}
}
