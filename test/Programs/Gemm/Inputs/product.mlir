!any = memref<?x?xbf16, strided<[?, 1]>>
func.func @product(%a: !any, %b: !any, %c: !any) {
  kvbuffer.gemm a(%a) b(%b) out(%c) {transpose_b} : !any, !any, !any
  return
}
