// Attributes that nobody would read are refused on every op of the dialect, in
// both syntaxes, and so are unknown names, keys and kinds of values with the
// dialect's prefix.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @misspelt(%q: !qo, %k: !kv) {
  // expected-error @below {{'kvbuffer.attention' op has an unknown attribute 'soft_cap'; did you mean 'softcap'? (expected batch_invariant, block_mask, mask, scale, schedule or softcap)}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {soft_cap = 30.0 : f32} : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @generic(%q: !qo, %k: !kv) {
  // expected-error @below {{'kvbuffer.attention' op has an unknown attribute 'softcapp'; did you mean 'softcap'?}}
  "kvbuffer.attention"(%q, %k, %k, %q) ({}, {}) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 1, 0>, softcapp = 30.0 : f32} : (!qo, !kv, !kv, !qo) -> ()
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @property(%q: !qo, %k: !kv) {
  // expected-error @below {{has an unknown property 'batch_invarient'; did you mean 'batch_invariant'? (expected batch_invariant, block_mask, mask, scale, schedule or softcap)}}
  "kvbuffer.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 1, 0>, batch_invarient}> ({}, {}) : (!qo, !kv, !kv, !qo) -> ()
  return
}

// -----

// A name that is required: the wrong one is reported, not the missing one.
func.func @required(%row: index) {
  // expected-error @below {{'kvbuffer.key_range' op has an unknown attribute 'masks'; did you mean 'mask'? (expected BM, descending, group, mask or per_group)}}
  %r:4 = kvbuffer.key_range %row of %row keys %row {BM = 64, masks = #kvbuffer.mask<>}
  return
}

// -----

func.func @none() {
  // expected-error @below {{'kvbuffer.meet' op has an unknown attribute 'end'; expected none}}
  kvbuffer.meet {end}
  return
}

// -----

func.func @lane(%range: !kvbuffer.range, %offset: i32) {
  // expected-error @below {{'kvbuffer.range_load' op has an unknown attribute 'volatile'; expected none}}
  %x = kvbuffer.range_load %range[%offset] {volatile} : vector<8xbf16>
  return
}

// -----

// What belongs to another dialect stays.
func.func @foreign() {
  kvbuffer.meet {llvm.loop_annotation}
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
func.func @elsewhere(%q: !qo, %k: !kv) {
  // expected-error @below {{'kvbuffer.attention' op has the attribute 'kvbuffer.target', which nothing reads here; expected it on a module}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {kvbuffer.target = "sm_90a"} : !qo, !kv, !kv, !qo
  return
}

// -----

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!qo = memref<?x?x2x64xbf16>
#s = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>
func.func @scheduled(%q: !qo, %k: !kv) {
  // expected-error @below {{'kvbuffer.attention' op has the attribute 'kvbuffer.schedule', which nothing reads here; expected it on a function}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%q) {kvbuffer.schedule = #s} : !qo, !kv, !kv, !qo
  return
}

// -----

// expected-error @below {{has an unknown attribute 'kvbuffer.targets'; did you mean 'kvbuffer.target'?}}
module attributes {kvbuffer.targets = "sm_80"} {
}

// -----

// expected-error @below {{argument 0 has an unknown attribute 'kvbuffer.role'; did you mean 'kvbuffer.name'? (expected kvbuffer.name, kvbuffer.access, kvbuffer.shape, kvbuffer.index, kvbuffer.sizes, kvbuffer.rising or kvbuffer.stream)}}
func.func private @f(memref<?xf32> {kvbuffer.role = "sink"})

// -----

// expected-error @below {{attribute 'kvbuffer.name' of argument 0 must be a string, the tensor's name, got 3 : i64}}
func.func private @f(memref<?xf32> {kvbuffer.name = 3 : i64})

// -----

// expected-error @below {{#kvbuffer.launch has an unknown key 'dynamic_shared'; did you mean 'dynamic_shared_bytes'? (expected alignment, args, ahead, beside, block, copies, copies_if, defaults, dynamic_shared_bytes, entry, grid, instead, launch_if or requires)}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<block = [32, 1, 1], dynamic_shared = 1024>}

// -----

// expected-error @below {{key 'block' of #kvbuffer.launch must be an array of integers, got "32"}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<block = "32">}

// -----

// expected-error @below {{key 'grid' of #kvbuffer.launch must be an array of integers, names of sizes and #kvbuffer.size<...>, got [{quotient = ["seq_q", 64]}, 1, 1]}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<grid = [{quotient = ["seq_q", 64]}, 1, 1]>}

// -----

// expected-error @below {{expected pointer, stride, size, launch_counter or tensor_map}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<args = [<ptr "q">]>}

// -----

// expected-error @below {{attribute 'kvbuffer.kernel' must be a #kvbuffer.launch<...>}}
func.func private @f() attributes {kvbuffer.kernel = {block = [32, 1, 1]}}

// -----

// expected-error @below {{#kvbuffer.launch has 'entry' twice}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<entry = "f", entry = "g">}

// -----

// expected-error @below {{expected an integer, the name of a size or #kvbuffer.size<...>, got {}}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<args = [<size {}>]>}

// -----

// expected-error @below {{'flat' of #kvbuffer.argument<tensor_map> has an unknown key 'folds'; did you mean 'fold'?}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<args = [<tensor_map "k", flat = {folds = 1}>]>}

// -----

// expected-error @below {{key 'defaults' of #kvbuffer.launch must be a dictionary from names of sizes to sizes, got {n = {}}}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<defaults = {n = {}}>}

// -----

// expected-error @below {{#kvbuffer.argument<stride> has an unknown key 'dims'; did you mean 'dim'? (expected dim or limit)}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<args = [<stride "q", dims = 1>]>}

// -----

// expected-error @below {{key 'dim' of #kvbuffer.argument<stride> must be an integer, got true}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<args = [<stride "q", dim = true>]>}

// -----

// expected-error @below {{#kvbuffer.problem has an unknown key 'soft_cap'; did you mean 'softcap'?}}
func.func private @f() attributes {kvbuffer.problem = #kvbuffer.problem<op = "attention", soft_cap = 1.0>}

// -----

// expected-error @below {{key 'heads' of #kvbuffer.problem must be an integer, got "8"}}
func.func private @f() attributes {kvbuffer.problem = #kvbuffer.problem<op = "attention", heads = "8">}

// -----

// expected-error @below {{attribute 'kvbuffer.tensors' must be an array of #kvbuffer.tensor<...>}}
func.func private @f() attributes {kvbuffer.tensors = [{name = "q", dtype = "bf16"}]}

// -----

// expected-error @below {{attribute 'kvbuffer.grid' must be an array of integers, names of sizes and}}
func.func private @f() attributes {kvbuffer.grid = [{min = 3 : i64}, 1, 1]}

// -----

func.func @loop(%n: index) {
  // expected-error @below {{attribute 'kvbuffer.whole_after_first' must be a unit attribute}}
  scf.for %i = %n to %n step %n {
  } {kvbuffer.whole_after_first = false}
  return
}

// -----

// expected-error @below {{attribute 'kvbuffer.stream' of argument 0 must be unit, got 3 : i64}}
func.func private @stream(!llvm.ptr {kvbuffer.stream = 3})

// -----

gpu.module @short_grid {
  // expected-error @below {{attribute 'kvbuffer.grid' must be three extents, along x, y and z; got 1}}
  gpu.func @kernel() kernel attributes {kvbuffer.grid = ["batch"]} {
    gpu.return
  }
}

// -----

// expected-error @below {{key 'grid' of #kvbuffer.launch must have three extents, got 2}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<grid = ["batch", 1]>}

// -----

// expected-error @below {{key 'block' of #kvbuffer.launch must have three extents, got 1}}
func.func private @f() attributes {kvbuffer.kernel = #kvbuffer.launch<block = [128]>}
