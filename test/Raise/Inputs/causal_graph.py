"""A graph of generics that is attention, causal and scaled, for edits in one place at a
time: near-misses.py, masked-rows.py."""

GRAPH = """
func.func @NAME(%q: tensor<2x8x16xbf16>, %k: tensor<2x12x16xbf16>, %v: tensor<2x12x16xbf16>)
    -> (tensor<2x8x16xbf16>EXTRA_TYPE) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %hidden = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.25 : f32
  %c4 = arith.constant 4 : index
  %es = tensor.empty() : tensor<2x8x12xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %qk = linalg.generic {indexing_maps = [#hid, #hjd, #hij_d], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x16xbf16>, tensor<2x12x16xbf16>) outs(%fs : tensor<2x8x12xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %xy = arith.mulf %x, %y : f32
    %sum = arith.addf %c, %xy : f32
    linalg.yield %sum : f32
  } -> tensor<2x8x12xf32>
  %s = linalg.generic {indexing_maps = [#hij, #hij], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%qk : tensor<2x8x12xf32>) outs(%es : tensor<2x8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %scaled = arith.mulf %a, %scale : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %p = arith.addi %i, %c4 : index
    %seen = arith.cmpi sle, %j, %p : index
    %masked = arith.select %seen, %scaled, %hidden : f32
    linalg.yield %masked : f32
  } -> tensor<2x8x12xf32>
  %em = tensor.empty() : tensor<2x8xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%em : tensor<2x8xf32>) -> tensor<2x8xf32>
  %m = linalg.generic {indexing_maps = [#hij, #hi], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x8x12xf32>) outs(%fm : tensor<2x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %max = arith.maximumf %a, %c : f32
    linalg.yield %max : f32
  } -> tensor<2x8xf32>
  %e = linalg.generic {indexing_maps = [#hij, #hi, #hij], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x8x12xf32>, tensor<2x8xf32>) outs(%es : tensor<2x8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %x = math.exp %d : f32
    linalg.yield %x : f32
  } -> tensor<2x8x12xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%em : tensor<2x8xf32>) -> tensor<2x8xf32>
  %l = linalg.generic {indexing_maps = [#hij, #hi], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e : tensor<2x8x12xf32>) outs(%fl : tensor<2x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %plus = arith.addf %a, %c : f32
    linalg.yield %plus : f32
  } -> tensor<2x8xf32>
  %w = linalg.generic {indexing_maps = [#hij, #hi, #hij], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %l : tensor<2x8x12xf32>, tensor<2x8xf32>) outs(%es : tensor<2x8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.divf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<2x8x12xf32>
  %eo = tensor.empty() : tensor<2x8x16xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %o = linalg.generic {indexing_maps = [#hi_j, #hjd_o, #hid_o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<2x8x12xf32>, tensor<2x12x16xbf16>) outs(%fo : tensor<2x8x16xf32>) {
  ^bb0(%a: f32, %b: bf16, %c: f32):
    %y = arith.extf %b : bf16 to f32
    %xy = arith.mulf %a, %y : f32
    %plus = arith.addf %c, %xy : f32
    linalg.yield %plus : f32
  } -> tensor<2x8x16xf32>
  %er = tensor.empty() : tensor<2x8x16xbf16>
  %r = linalg.generic {indexing_maps = [#hij, #hij], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%o : tensor<2x8x16xf32>) outs(%er : tensor<2x8x16xbf16>) {
  ^bb0(%a: f32, %c: bf16):
    %x = arith.truncf %a : f32 to bf16
    linalg.yield %x : bf16
  } -> tensor<2x8x16xbf16>
  return %rEXTRA_VALUE : tensor<2x8x16xbf16>EXTRA_TYPE
}
"""

MAPS = """
#hid = affine_map<(h, i, j, d) -> (h, i, d)>
#hjd = affine_map<(h, i, j, d) -> (h, j, d)>
#hij_d = affine_map<(h, i, j, d) -> (h, i, j)>
#hij = affine_map<(h, i, j) -> (h, i, j)>
#hi = affine_map<(h, i, j) -> (h, i)>
#hi_j = affine_map<(h, i, d, j) -> (h, i, j)>
#hjd_o = affine_map<(h, i, d, j) -> (h, j, d)>
#hid_o = affine_map<(h, i, d, j) -> (h, i, d)>
#hj = affine_map<(h, i, j) -> (h, j)>
#swapped = affine_map<(h, i, d, j) -> (h, j, i)>
"""


def edit(graph, edits):
    for old, new in edits:
        assert old in graph, old
        graph = graph.replace(old, new)
    return graph
