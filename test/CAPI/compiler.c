/* The headers are C, and nothing but the library is needed to use them.
RUN: %cc -x c -std=c11 -Wall -Wextra -pedantic -Werror -I%src/include %s \
RUN:   -L%lib -lKVBufferC -Wl,-rpath,%lib -o %t
RUN: %t %src/test/Tools/Inputs/exp2.mlir | FileCheck %s
*/
#include "kvbuffer-c/Compiler.h"
#include <stdio.h>
#include <string.h>

static void print_message(int severity, const char *message, void *user) {
  int *count = user;
  ++*count;
  printf("  message %d: %s\n", severity, message);
}

int main(int argc, char **argv) {
  static char source[65536];
  int messages = 0;
  size_t size = 0, bytes;
  char *text;
  unsigned char *artifact;
  FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
  if (!file)
    return 2;
  bytes = fread(source, 1, sizeof(source) - 1, file);
  fclose(file);

  /* CHECK-LABEL: compile
     CHECK-NEXT: magic KVBUF, 0 messages
  */
  printf("compile\n");
  artifact = kvbufCompile(source, bytes, "exp2.mlir",
                          "{\"ptxas\": \"none\", \"target\": \"sm_80\"}", &size,
                          print_message, &messages);
  if (!artifact || size < 28)
    return 1;
  printf("magic %.5s, %d messages\n", (char *)artifact, messages);
  kvbufFree(artifact);

  /* CHECK-LABEL: emit
     CHECK: .entry exp2
  */
  printf("emit\n");
  text = kvbufEmit(source, bytes, "exp2.mlir", NULL, "asm", print_message,
                   &messages);
  if (!text)
    return 1;
  printf("%s", text);
  kvbufFree(text);

  /* CHECK-LABEL: candidates
     CHECK-NEXT: BM=
     CHECK: unknown chip: none
  */
  printf("candidates\n");
  text = kvbufScheduleCandidates("sm_90a");
  printf("%s\n", text ? text : "none");
  kvbufFree(text);
  text = kvbufScheduleCandidates("sm_1");
  printf("unknown chip: %s\n", text ? text : "none");
  kvbufFree(text);

  /* Those of a problem, and where there is none those of the chip.
     CHECK: a product: BM=64,128,256;BN=64,128;stages=2,3,4
     CHECK: no problem: BM=
     CHECK: no module: none
  */
  const char *product =
      "func.func @f(%a: memref<?x?xf16>, %c: memref<?x?xf32>) {\n"
      "  kvbuffer.gemm a(%a) b(%a) out(%c)\n"
      "    : memref<?x?xf16>, memref<?x?xf16>, memref<?x?xf32>\n"
      "  return\n}\n";
  text = kvbufProblemCandidates(product, strlen(product), "f.mlir", "sm_80");
  printf("a product: %s\n", text ? text : "none");
  kvbufFree(text);
  text = kvbufProblemCandidates("", 0, "f.mlir", "sm_80");
  printf("no problem: %s\n", text ? text : "none");
  kvbufFree(text);
  text = kvbufProblemCandidates("nothing", 7, "f.mlir", "sm_80");
  printf("no module: %s\n", text ? text : "none");
  kvbufFree(text);

  /* The chip that a module names; none, and one that does not parse.
     CHECK-LABEL: module's target
     CHECK-NEXT: sm_80
     CHECK-NEXT: empty: ''
     CHECK-NEXT: message 3: bad.mlir:1:1: error: custom op 'foo' is unknown
     CHECK: bad: none
  */
  printf("module's target\n");
  text =
      kvbufModuleTarget(source, bytes, "exp2.mlir", print_message, &messages);
  printf("%s\n", text ? text : "none");
  kvbufFree(text);
  text = kvbufModuleTarget("", 0, "empty.mlir", print_message, &messages);
  printf("empty: '%s'\n", text ? text : "none");
  kvbufFree(text);
  text = kvbufModuleTarget("foo", 3, "bad.mlir", print_message, &messages);
  printf("bad: %s\n", text ? text : "none");
  kvbufFree(text);

  /* A default counts where neither the options nor the module names a chip;
     here the module does.
     CHECK-LABEL: default target
     CHECK: kvbuffer.target = "sm_80"
  */
  printf("default target\n");
  text =
      kvbufEmit(source, bytes, "exp2.mlir", "{\"default_target\": \"sm_90\"}",
                "target", print_message, &messages);
  if (!text)
    return 1;
  printf("%s", text);
  kvbufFree(text);

  /* Remarks come as messages of severity 1.
     CHECK-LABEL: remarks
     CHECK: message 1: exp2.mlir:4:5: remark: [ptxas] cubin: ptxas is switched off
  */
  printf("remarks\n");
  artifact = kvbufCompile(source, bytes, "exp2.mlir",
                          "{\"ptxas\": \"none\", \"remarks\": true}", &size,
                          print_message, &messages);
  kvbufFree(artifact);

  /* Errors name the place, and show it.
     CHECK-LABEL: errors
     CHECK-NEXT: message 3: bad.mlir:1:1: error: custom op 'foo' is unknown {{.*}}
     CHECK-NEXT: foo
     CHECK-NEXT: ^
     CHECK-NEXT: message 3: error: options: unknown key 'tarket'
     CHECK-NEXT: message 3: error: options: 'target' must be a string
     CHECK-NEXT: message 3: error: options: {{.*}}Expected
     CHECK-NEXT: message 3: error: unknown stage 'binary'; expected tile
     CHECK-NEXT: message 3: exp2.mlir:2:1: error: has no function 'wide'; it has 'exp2'
     CHECK: message 3: exp2.mlir:2:1: error: unknown target 'sm_1'
     CHECK: done
  */
  printf("errors\n");
#define EXPECT_NULL(CALL)                                                      \
  if (CALL)                                                                    \
    return 1;
  EXPECT_NULL(kvbufCompile("foo", 3, "bad.mlir", "", &size, print_message,
                           &messages));
  EXPECT_NULL(kvbufCompile(source, bytes, "exp2.mlir", "{\"tarket\": \"a\"}",
                           &size, print_message, &messages));
  EXPECT_NULL(kvbufCompile(source, bytes, "exp2.mlir", "{\"target\": 80}",
                           &size, print_message, &messages));
  EXPECT_NULL(kvbufCompile(source, bytes, "exp2.mlir", "{", &size,
                           print_message, &messages));
  EXPECT_NULL(kvbufEmit(source, bytes, "exp2.mlir", NULL, "binary",
                        print_message, &messages));
  EXPECT_NULL(kvbufCompile(source, bytes, "exp2.mlir",
                           "{\"function\": \"wide\"}", &size, print_message,
                           &messages));
  memcpy(strstr(source, "sm_80"), "sm_1\"", 5);
  memcpy(strstr(source, "sm_1\"") + 5, " ", 1);
  EXPECT_NULL(kvbufEmit(source, bytes, "exp2.mlir", NULL, "asm", print_message,
                        &messages));
  /* No callback, no message, no crash. */
  EXPECT_NULL(kvbufCompile("foo", 3, "bad.mlir", NULL, NULL, NULL, NULL));
  kvbufFree(NULL);
  printf("done\n");
  return 0;
}
