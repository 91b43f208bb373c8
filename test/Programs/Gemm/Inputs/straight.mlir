!in = memref<?x?xf16, strided<[?, 1]>>
!out = memref<?x?xf32, strided<[?, 1]>>
func.func @straight(%a: !in, %b: !in, %c: !out) {
  kvbuffer.gemm a(%a) b(%b) out(%c) : !in, !in, !out
  return
}
