// A schedule names a kind for each question that it answers. A list of parameters, which
// options are, is text of one, too; printed are kinds.

// RUN: kvbuf-opt %s | FileCheck %s
// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s

#tile = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [16, 8, 16], lazy_rescale = true, ahead = scores>

// Kinds that answer where nothing is said are not printed.
// CHECK-DAG: [[ALIKE:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK-DAG: [[HALVES:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, lazy_rescale = true, teams = halves, ahead = scores>
// CHECK-DAG: [[SCORES:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, lazy_rescale = true, ahead = scores>
// CHECK-DAG: [[MOVING:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, teams = moving<producers = 4, producer_registers = 24, consumer_registers = 240, ping_pong = true>, work = several_tiles<tiles = static, cluster = 2>, ahead = softmax>
// CHECK-DAG: [[SPLIT:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, work = split_keys<split_size = 128>, ahead = loads<look_ahead = true>>
// CHECK-DAG: [[KEYS:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, work = split_keys<equal_shares = true>>
// CHECK-DAG: [[BLOCKS:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, work = one_tile<xcds = 8>, slots = blocks<v_path = registers>>
// CHECK-DAG: [[PATHS:#schedule[0-9]*]] = #kvbuffer.schedule<BM = 64, {{.*}}, slots = tiles<k_path = registers, v_path = registers>>

// CHECK: @by_kinds() attributes {alike = [[ALIKE]], blocks = [[BLOCKS]], halves = [[HALVES]], keys = [[KEYS]], moving = [[MOVING]], paths = [[PATHS]], scores = [[SCORES]], split = [[SPLIT]]}
func.func private @by_kinds() attributes {
  alike = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], teams = alike, work = one_tile, ahead = loads, slots = tiles>,
  halves = #kvbuffer.schedule<teams = halves, ahead = scores, BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], lazy_rescale = true>,
  scores = #tile,
  moving = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], work = several_tiles<cluster = 2, tiles = static>, teams = moving<ping_pong = true, producer_registers = 24, consumer_registers = 240, producers = 4>, ahead = softmax>,
  split = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], work = split_keys<split_size = 128>, ahead = loads<look_ahead = true>>,
  keys = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], work = split_keys<equal_shares = true>>,
  blocks = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], work = one_tile<xcds = 8>, slots = blocks<v_path = registers>>,
  paths = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], slots = tiles<v_path = registers, k_path = registers>>
}

// Kinds and parameters that say the same are one attribute.
// CHECK: @by_list() attributes {alike = [[ALIKE]], blocks = [[BLOCKS]], halves = [[HALVES]], keys = [[KEYS]], mixed = [[MOVING]], moving = [[MOVING]], paths = [[PATHS]], scores = [[SCORES]], split = [[SPLIT]]}
func.func private @by_list() attributes {
  alike = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16]>,
  halves = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], ping_pong = true, lazy_rescale = true, overlap = true>,
  scores = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], lazy_rescale = true, overlap = true>,
  moving = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240, overlap_products = true, ping_pong = true, tiles = static, cluster = 2>,
  mixed = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], teams = moving<producers = 4, producer_registers = 24, consumer_registers = 240, ping_pong = true>, overlap_products = true, tiles = static, cluster = 2>,
  split = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], split_keys = true, split_size = 128, look_ahead = true>,
  keys = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], split_keys = true, equal_shares = true>,
  blocks = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], xcds = 8, full_kv = false, v_path = registers>,
  paths = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, mma_shape = [16, 8, 16], k_path = registers, v_path = registers>
}
