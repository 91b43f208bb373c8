// A race in shared memory names the element: its row and column, the slot and
// the buffer. `kvbuffer.lds` tells where each lies.
//
// RUN: not kvbuf-emu-test %s --block=64 --arg=i32:3472 --options='{"uninitialized":false}' 2>&1 | FileCheck %s --check-prefix=SWIZZLED
// RUN: not kvbuf-emu-test %s --block=64 --arg=i32:4244 --options='{"uninitialized":false}' 2>&1 | FileCheck %s --check-prefix=TURNED
// RUN: not kvbuf-emu-test %s --block=64 --arg=i32:5232 --options='{"uninitialized":false}' 2>&1 | FileCheck %s --check-prefix=TERMS
//
// Rows of 64 elements of 2 bytes, 8 vectors of 16 bytes, two blocks of 8 rows a
// slot. Row 3, column 80 is in the second block, vector 3 * 8 + 2 = 26, which
// the swizzle puts at 26 ^ 3 = 25: byte 2048 + 1024 + 400.
// SWIZZLED: error: 'llvm.store' by thread 0 {{.*}}: shared-memory race: write of shared byte 0xd90 (byte 3472 of 'lds') (row 3, column 80, of slot 1 of 'k') with no barrier after the read by warp 1, 'llvm.load'
// SWIZZLED-NEXT: note: 'llvm.load': the read by warp 1
//
// A tile of 16 keys and 8 columns, transposed: 32 bytes for each column. Bit 0
// of a key is bit 1 of its place: key 1 is at byte 4. Column 4 begins at byte
// 128, and its vectors are exchanged (`folds`): 4096 + 128 + (4 ^ 16).
// TURNED: shared-memory race: write of shared byte 0x1094 (byte 4244 of 'lds') (row 1, column 4, of slot 0 of 'v') with no barrier
//
// Rows of 4 vectors. Row 13, column 16 is vector 13 * 4 + 2 = 54; bits 2 and 3 of
// the row are set, of which the first moves it by 3, the second by 2: vector 55,
// byte 4352 + 880.
// TERMS: shared-memory race: write of shared byte 0x1470 (byte 5232 of 'lds') (row 13, column 16, of slot 0 of 'k2') with no barrier

module {
  llvm.mlir.global internal @lds() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<5376 x i8>
  llvm.func @kernel(%at: i32) attributes {nvvm.kernel, kvbuffer.lds = [
      #kvbuffer.lds<name = "k", offset = 0, slots = 2, slot_bytes = 2048, element_bytes = 2, rows = 8, row_bytes = 128, cols = 64, swizzle = [3, 0, 3]>,
      #kvbuffer.lds<name = "v", offset = 4096, slots = 1, slot_bytes = 256, element_bytes = 2, keys = 16, depth = 8, key_bits = [1, 0, 2, 3], folds = [0, 0, 16], banks = 32>,
      #kvbuffer.lds<name = "k2", offset = 4352, slots = 1, slot_bytes = 1024, element_bytes = 2, rows = 16, row_bytes = 64, cols = 32, swizzle = [2, 0, 4, 1, 1, 3]>]} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %p = llvm.getelementptr %lds[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %first = llvm.icmp "eq" %t, %c0 : i32
    llvm.cond_br %first, ^write, ^written
  ^write:
    llvm.store %t, %p : i32, !llvm.ptr<3>
    llvm.br ^written
  ^written:
    %other = llvm.icmp "eq" %t, %c32 : i32
    llvm.cond_br %other, ^read, ^end
  ^read:
    %x = llvm.load %p : !llvm.ptr<3> -> i32
    llvm.br ^end
  ^end:
    llvm.return
  }
}
