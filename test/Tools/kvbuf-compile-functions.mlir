// A module with several functions makes one artifact: each is there by its name,
// with the kernels, the manifest and the code that it has alone.
// RUN: kvbuf-compile %s --target=sm_80 --ptxas=none -o %t.kvbuf
// RUN: kvbuf-compile %s --target=sm_80 --ptxas=none --function=narrow -o %t.narrow.kvbuf
// RUN: kvbuf-compile %s --target=sm_80 --ptxas=none --function=wide -o %t.wide.kvbuf
// RUN: kvbuf-compile %s --target=sm_80 --ptxas=none --function=twice -o %t.twice.kvbuf
// RUN: %python %S/Inputs/functions.py %t.kvbuf narrow=%t.narrow.kvbuf wide=%t.wide.kvbuf twice=%t.twice.kvbuf

// Nothing of the others is in a function's code: it is that of a file of its own.
// RUN: sed '/^func.func @narrow/,/^}/d; /^gpu.module/,/^}/d' %s | kvbuf-compile - --target=sm_80 --emit=ptx --ptxas=none -o %t.wide.ptx
// RUN: kvbuf-compile %s --target=sm_80 --function=wide --emit=ptx --ptxas=none -o %t.chosen.ptx
// RUN: cmp %t.wide.ptx %t.chosen.ptx

// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s --check-prefix=INSPECT
// INSPECT: {{^}}function narrow
// INSPECT-NEXT: kernel narrow ({{.*}}): bf16, 2 heads on 2, head size 64, dense query, dense cache
// INSPECT: {{^}}kernel narrow
// INSPECT: {{^}}kernel narrow_of_few_rows
// INSPECT: {{^}}kernel narrow_unaligned
// INSPECT: {{^}}function wide
// INSPECT-NEXT: kernel wide ({{.*}}): bf16, 4 heads on 2, head size 128, dense query, dense cache, causal
// INSPECT: {{^}}kernel wide
// INSPECT: else wide_of_few_rows
// INSPECT: o bf16 [batch, seq_q, 4, 128], written
// INSPECT: {{^}}function twice
// INSPECT: grid ceildiv(n, 32) x 1 x 1
// INSPECT: {{^}}kernel again
// INSPECT: {{^}}tensors
// INSPECT: t f32 [n], read and written
// RUN: kvbuf-inspect %t.kvbuf --function=twice | FileCheck %s --check-prefix=ONE --implicit-check-not=narrow --implicit-check-not=wide
// ONE: kernel twice ({{.*}}): a problem that the tools do not know
// RUN: kvbuf-inspect %t.kvbuf --json | FileCheck %s --check-prefix=JSON
// JSON: "functions": {
// JSON: "narrow": {
// JSON: "narrow_unaligned"
// JSON: "wide": {
// JSON: "twice": {
// RUN: kvbuf-inspect %t.kvbuf --function=wide --extract ptx=%t.extracted.ptx
// RUN: FileCheck %s --check-prefix=EXTRACTED --implicit-check-not=narrow < %t.extracted.ptx
// EXTRACTED: .entry wide(
// RUN: not kvbuf-inspect %t.kvbuf --extract ptx=%t.none 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not kvbuf-run %t.kvbuf --device=emulator 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not kvbuf-run %s --device=emulator 2>&1 | FileCheck %s --check-prefix=SEVERAL
// SEVERAL: error: '{{.*}}': the artifact has 3 functions, 'narrow', 'wide' and 'twice'; choose one with --function=NAME
// RUN: not kvbuf-run %t.kvbuf --function=wider --device=emulator 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not kvbuf-inspect %t.kvbuf --function=wider 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not kvbuf-compile %t.kvbuf --report --function=wider 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: '{{.*}}.kvbuf': there is no function 'wider'; the artifact has 'narrow', 'wide' and 'twice'
// RUN: not kvbuf-run %s --function=wider --device=emulator 2>&1 | FileCheck %s --check-prefix=SOURCE
// SOURCE: error: has no function 'wider'; it has 'narrow', 'wide' and 'twice'

// A report has each, too, from the compilation as from the artifact.
// RUN: kvbuf-compile %s --target=sm_80 --ptxas=none --report -o %t.again.kvbuf > %t.report
// RUN: FileCheck %s --check-prefix=REPORT < %t.report
// REPORT: {{^}}function narrow
// REPORT-NEXT: {{^}}kernel {{.*}}threads
// REPORT-NEXT: {{^}}narrow {{ *}}128
// REPORT-NEXT: {{^}}narrow_of_fewest_rows {{ *}}128
// REPORT-NEXT: {{^}}narrow_of_few_rows {{ *}}32
// REPORT-NEXT: {{^}}narrow_unaligned {{ *}}128
// REPORT: {{^}}function wide
// REPORT: {{^}}wide_of_few_rows
// REPORT: {{^}}function twice
// REPORT-NEXT: {{^}}kernel {{.*}}threads
// REPORT-NEXT: {{^}}twice {{ *}}32
// REPORT-NEXT: {{^}}again {{ *}}32
// RUN: kvbuf-compile %t.kvbuf --report | cmp - %t.report
// RUN: kvbuf-compile %t.kvbuf --report=json > %t.json
// RUN: kvbuf-compile %t.kvbuf --report=json --function=wide > %t.chosen.json
// RUN: kvbuf-compile %t.wide.kvbuf --report=json > %t.wide.json
// RUN: cmp %t.chosen.json %t.wide.json
// RUN: %python %S/Inputs/functions.py --reports %t.json narrow twice wide=%t.wide.json

// Text is of one stage; each function has it, from its own stage on.
// RUN: not kvbuf-compile %s --emit=tile 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: error: 'kvbuffer.attention' op stands beside a kernel that is lowered already; a module is at one stage
// RUN: kvbuf-compile %s --function=wide --emit=tile | FileCheck %s --check-prefix=TILE --implicit-check-not=@narrow --implicit-check-not=@twice
// TILE: gpu.func @wide(
// RUN: not kvbuf-compile %s --function=twice --emit=tile 2>&1 | FileCheck %s --check-prefix=BACK
// BACK: error: is at stage 'thread' already; it cannot go back to 'tile'

// Each runs, and is right.
// RUN: kvbuf-run %t.kvbuf --function=narrow --device=emulator --check --size batch=2 --size seq=70 | FileCheck %s --check-prefix=NARROW
// NARROW: kernel narrow ({{.*}}): bf16, 2 heads on 2, head size 64
// NARROW: check all 280 rows against float64
// NARROW: PASS
// RUN: kvbuf-run %t.kvbuf --function=wide --device=emulator --check --size batch=2 --size seq=70 | FileCheck %s --check-prefix=WIDE
// WIDE: check all 560 rows against float64
// WIDE: PASS
// RUN: kvbuf-run %t.kvbuf --function=wide --device=emulator --check --size batch=1 --size seq_q=2 --size seq_k=90 | FileCheck %s --check-prefix=FEW
// FEW: launched wide_of_fewest_rows
// FEW: PASS
// RUN: kvbuf-run %s --target=sm_80 --function=narrow --device=emulator --check --size batch=1 --size seq=9 | FileCheck %s --check-prefix=COMPILED
// COMPILED: kernel narrow
// COMPILED: PASS
// RUN: kvbuf-run %s --target=sm_80 --function=narrow --device=emulator --size batch=1 --size seq=9 --report=%t.html
// RUN: FileCheck %s --check-prefix=PAGE --implicit-check-not=wide_ < %t.html
// PAGE: func.func @narrow

// Not what a kernel's file says is chosen, but an error.
// RUN: not kvbuf-tune %s --device=emulator --target=sm_80 --candidates BN=32 --size seq=9 2>&1 | FileCheck %s --check-prefix=TUNE
// TUNE: error: {{.*}}the artifact has 3 functions, 'narrow', 'wide' and 'twice'; choose one with --function=NAME
// RUN: kvbuf-tune %s --function=narrow --device=emulator --target=sm_80 --candidates BN=32 --size batch=1 --size seq=9 | FileCheck %s --check-prefix=TUNED
// TUNED: BN=32

!q64 = memref<?x?x2x64xbf16>
!kv64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!q128 = memref<?x?x4x128xbf16>
!kv128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>

func.func @narrow(%q: !q64, %k: !kv64, %v: !kv64, %o: !q64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !kv64, !kv64, !q64
  return
}

func.func @wide(%q: !q128, %k: !kv128, %v: !kv128, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q128, !kv128, !kv128, !q128
  return
}

// Kernels of one gpu.module run one after the other, whatever stage the module's
// other functions are at.
gpu.module @kernels {
  gpu.func @twice(%x: memref<?xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n"]}, %t: memref<?xf32> {kvbuffer.name = "t", kvbuffer.shape = ["n"]}) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 32)>, 1, 1], kvbuffer.phase = #kvbuffer.phase<thread>} {
    %i = gpu.global_id x
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in {
      %value = memref.load %x[%i] : memref<?xf32>
      %sum = arith.addf %value, %value : f32
      memref.store %sum, %t[%i] : memref<?xf32>
    }
    gpu.return
  }
  gpu.func @again(%t: memref<?xf32> {kvbuffer.name = "t", kvbuffer.shape = ["n"]}, %y: memref<?xf32> {kvbuffer.name = "y", kvbuffer.shape = ["n"]}) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 32)>, 1, 1], kvbuffer.phase = #kvbuffer.phase<thread>} {
    %i = gpu.global_id x
    %c0 = arith.constant 0 : index
    %n = memref.dim %y, %c0 : memref<?xf32>
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in {
      %value = memref.load %t[%i] : memref<?xf32>
      %sum = arith.addf %value, %value : f32
      memref.store %sum, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
