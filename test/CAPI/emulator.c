/* The emulator from C: a clean launch, a fault, bad usage, and the report.
RUN: %cc -x c -std=c11 -Wall -Wextra -pedantic -Werror -I%src/include %s \
RUN:   -L%lib -lKVBufferC -Wl,-rpath,%lib -o %t
RUN: %t | FileCheck %s
*/
#include "kvbuffer-c/Emulator.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char source[] =
    "llvm.func @twice(%in: !llvm.ptr, %out: !llvm.ptr, %n: i32)"
    " attributes {nvvm.kernel} {\n"
    "  %t = nvvm.read.ptx.sreg.tid.x : i32\n"
    "  %p = llvm.getelementptr %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
    "  %x = llvm.load %p : !llvm.ptr -> f32\n"
    "  %y = llvm.fadd %x, %x : f32\n"
    "  %q = llvm.getelementptr %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
    "  llvm.store %y, %q : f32, !llvm.ptr\n"
    "  llvm.return\n"
    "}\n";

static void print_message(int severity, const char *message, void *user) {
  (void)user;
  printf("  message %d: %s\n", severity, message);
}

static void print_progress(uint64_t done, uint64_t total, void *user) {
  (void)user;
  printf("  block %d of %d\n", (int)done, (int)total);
}

/* Adds the second element of a constant to a variable. */
static const char *const variables =
    "llvm.mlir.global external constant @scale(dense<0> : tensor<2xi32>)"
    " {addr_space = 4 : i32} : !llvm.array<2 x i32>\n"
    "llvm.mlir.global external @count(1 : i32) {addr_space = 1 : i32} : i32\n"
    "llvm.func @add() attributes {nvvm.kernel} {\n"
    "  %s = llvm.mlir.addressof @scale : !llvm.ptr<4>\n"
    "  %p = llvm.getelementptr %s[1] : (!llvm.ptr<4>) -> !llvm.ptr<4>, i32\n"
    "  %x = llvm.load %p : !llvm.ptr<4> -> i32\n"
    "  %c = llvm.mlir.addressof @count : !llvm.ptr<1>\n"
    "  %o = llvm.load %c : !llvm.ptr<1> -> i32\n"
    "  %n = llvm.add %o, %x : i32\n"
    "  llvm.store %n, %c : i32, !llvm.ptr<1>\n"
    "  llvm.return\n"
    "}\n";

static void use_variables(void) {
  const unsigned one[3] = {1, 1, 1};
  const int32_t scale[2] = {5, 40};
  size_t bytes = 0, none = 1;
  kvbufEmulator *emulator = kvbufEmulatorCreate(
      variables, strlen(variables), "add.mlir", NULL, print_message, NULL);
  int set, large, launched;
  const int32_t *count;
  if (!emulator)
    return;
  /* CHECK: message 3: {{.*}}error: variable 'scale' has 8 bytes, not 12
     CHECK: set 0 2, launch 0, count 41 of 4 bytes, other 1 0
  */
  set = kvbufEmulatorSetVariable(emulator, "scale", scale, sizeof(scale));
  large = kvbufEmulatorSetVariable(emulator, "scale", variables, 12);
  launched = kvbufEmulatorLaunch(emulator, "add", one, one, 0, NULL, NULL, 0,
                                 NULL, NULL);
  count = kvbufEmulatorVariable(emulator, "count", &bytes);
  printf("set %d %d, launch %d, count %d of %d bytes", set, large, launched,
         count ? (int)*count : 0, (int)bytes);
  printf(", other %d %d\n",
         kvbufEmulatorVariable(emulator, "other", &none) == NULL, (int)none);
  kvbufEmulatorDestroy(emulator);
}

int main(void) {
  static _Alignas(16) float in[64], out[64];
  const unsigned grid[3] = {2, 1, 1}, block[3] = {64, 1, 1};
  void *pin = in, *pout = out;
  int n = 64, i;
  const void *args[3];
  const size_t sizes[3] = {sizeof(void *), sizeof(void *), sizeof(int)};
  kvbufEmulator *emulator;
  char *report;
  args[0] = &pin;
  args[1] = &pout;
  args[2] = &n;
  for (i = 0; i < 64; ++i)
    in[i] = (float)i;
  use_variables();

  /* CHECK: bad source
     CHECK-NEXT: message 3: twice.mlir:1:1: error
     CHECK: null 1
  */
  printf("bad source\n");
  emulator = kvbufEmulatorCreate("oops", 4, "twice.mlir", NULL, print_message,
                                 NULL);
  printf("null %d\n", emulator == NULL);

  emulator = kvbufEmulatorCreate(source, strlen(source), "twice.mlir",
                                 "{\"seed\": 2}", print_message, NULL);
  if (!emulator)
    return 1;
  /* CHECK: register 0 0 0 {{.*}}error: buffer 'again' overlaps buffer 'out'
     CHECK-NEXT: 2
  */
  printf("register %d", kvbufEmulatorRegisterBuffer(emulator, "in", in,
                                                    sizeof(in), 1, 0, 1));
  printf(" %d", kvbufEmulatorRegisterBuffer(emulator, "out", out,
                                            sizeof(out) - 4, 0, 1, 0));
  /* Input may be given twice, output may not. */
  printf(" %d", kvbufEmulatorRegisterBuffer(emulator, "same", in, 4, 1, 0, 1));
  printf(" %d\n", kvbufEmulatorRegisterBuffer(emulator, "again", out, 4, 1, 0,
                                              1));
  /* CHECK: message 3: twice.mlir:7:3: error: 'llvm.store' by thread 63 {{.*}}out of bounds: writes 4 bytes at offset 252 of buffer 'out' (252 bytes)
     CHECK: block 1 of 2
     CHECK: block 2 of 2
     CHECK: launch 1, 124
  */
  i = kvbufEmulatorLaunch(emulator, "twice", grid, block, 0, args, sizes, 3,
                          print_progress, NULL);
  printf("launch %d, %g\n", i, (double)out[62]);
  /* CHECK: message 3: error: no kernel 'thrice'
     CHECK: launch 2
  */
  printf("launch %d\n", kvbufEmulatorLaunch(emulator, "thrice", grid, block, 0,
                                            args, sizes, 3, NULL, NULL));
  /* CHECK: report 1
  */
  report = kvbufEmulatorReport(emulator);
  printf("report %d\n", strstr(report, "\"kind\": \"bounds\"") != NULL);
  kvbufFree(report);
  kvbufEmulatorDestroy(emulator);
  kvbufEmulatorDestroy(NULL);
  return 0;
}
