/* Exercises the C API from C: an artifact, a device, a launch, and errors.
 *   c-api ARTIFACT OUTPUT.kvbuf */

#include "kvbuffer-c/Runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition,   \
              kvbufLastError());                                               \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { kQueries = 3, kKeys = 4, kHeads = 2, kSize = 64 };

/* bfloat16 values that are powers of two and zero. */
enum { kZero = 0x0000, kOne = 0x3F80, kTwo = 0x4000 };

static _Alignas(16) uint16_t q[kQueries * kHeads * kSize];
static _Alignas(16) uint16_t k[kKeys * kHeads * kSize];
static _Alignas(16) uint16_t v[kKeys * kHeads * kSize];
static _Alignas(16) uint16_t o[kQueries * kHeads * kSize];

/* An artifact of two functions, of which one is found by its name. */
static void findFunctions(const char *path, kvbufDevice *device) {
  kvbufArtifact *artifact = kvbufArtifactOpenFile(path);
  CHECK(artifact);
  CHECK(kvbufArtifactFunctionCount(artifact) == 2);
  CHECK(strcmp(kvbufArtifactFunctionName(artifact, 0), "narrow") == 0);
  CHECK(strcmp(kvbufArtifactFunctionName(artifact, 1), "wide") == 0);
  CHECK(strcmp(kvbufArtifactFunctionName(artifact, 2), "") == 0);
  CHECK(kvbufArtifactFunctionCount(NULL) == 0);
  CHECK(strcmp(kvbufArtifactFunctionName(NULL, 0), "") == 0);

  CHECK(!kvbufModuleLoad(device, artifact));
  const char *choose = "the artifact has 2 functions, 'narrow' and 'wide'; "
                       "choose one with kvbufArtifactFunction";
  CHECK(strcmp(kvbufLastError(), choose) == 0);
  int64_t shape[16];
  int32_t rank;
  CHECK(kvbufArtifactInferShape(artifact, "o", NULL, 0, NULL, 0, shape,
                                &rank) == KVBUF_BAD_INPUT);
  CHECK(strcmp(kvbufLastError(), choose) == 0);
  CHECK(!kvbufArtifactFunction(artifact, "other"));
  CHECK(strcmp(kvbufLastError(),
               "there is no function 'other'; the artifact has 'narrow' and "
               "'wide'") == 0);
  CHECK(!kvbufArtifactFunction(artifact, NULL));
  CHECK(!kvbufArtifactFunction(NULL, "wide"));

  kvbufArtifact *wide = kvbufArtifactFunction(artifact, "wide");
  CHECK(wide);
  kvbufArtifactClose(artifact);
  CHECK(kvbufArtifactFunctionCount(wide) == 1);
  CHECK(strcmp(kvbufArtifactFunctionName(wide, 0), "wide") == 0);
  CHECK(strstr(kvbufArtifactManifest(wide), "\"head_size\":128"));
  CHECK(!strstr(kvbufArtifactManifest(wide), "narrow"));
  kvbufModule *module = kvbufModuleLoad(device, wide);
  CHECK(module);
  kvbufModuleUnload(module);
  /* An artifact of one function has it by its name, too. */
  kvbufArtifact *again = kvbufArtifactFunction(wide, "wide");
  CHECK(again);
  CHECK(!kvbufArtifactFunction(wide, "narrow"));
  kvbufArtifactClose(again);
  kvbufArtifactClose(wide);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  CHECK(strcmp(kvbufRuntimeVersion(), "0.1.0") == 0);
  CHECK(strcmp(kvbufLastError(), "") == 0);

  CHECK(!kvbufArtifactOpenFile("absent.kvbuf"));
  CHECK(strstr(kvbufLastError(), "cannot open 'absent.kvbuf'"));
  CHECK(!kvbufArtifactOpenBytes("KVBUF", 5));
  CHECK(!kvbufArtifactOpenBytes(NULL, 5));

  kvbufArtifact *artifact = kvbufArtifactOpenFile(argv[1]);
  CHECK(artifact);
  CHECK(strstr(kvbufArtifactManifest(artifact), "\"attention\""));
  CHECK(kvbufArtifactSave(artifact, argv[2]) == KVBUF_OK);
  CHECK(kvbufArtifactSave(artifact, "/absent/folder/x") == KVBUF_BAD_INPUT);

  CHECK(!kvbufDeviceOpen("abacus", NULL));
  kvbufDevice *device = kvbufDeviceOpen("emulator", NULL);
  CHECK(device);
  CHECK(strcmp(kvbufDeviceKind(device), "emulator") == 0);
  kvbufModule *module = kvbufModuleLoad(device, artifact);
  CHECK(module);
  kvbufArtifactClose(artifact);

  /* Scores are all equal, so the result is the mean of V: (1+1+2+0)/4 = 1. */
  for (int i = 0; i < kKeys * kHeads * kSize; ++i) {
    int row = i / (kHeads * kSize);
    v[i] = row < 2 ? kOne : row == 2 ? kTwo : kZero;
  }
  const int64_t qShape[] = {1, kQueries, kHeads, kSize};
  const int64_t kShape[] = {1, kKeys, kHeads, kSize};
  kvbufTensor tensors[] = {{"q", q, "bf16", 4, qShape, NULL},
                           {"k", k, "bf16", 4, kShape, NULL},
                           {"v", v, "bf16", 4, kShape, NULL},
                           {"o", o, "bf16", 4, qShape, NULL}};
  CHECK(kvbufModuleLaunch(module, tensors, 4, NULL, 0, NULL) == KVBUF_OK);
  for (int i = 0; i < kQueries * kHeads * kSize; ++i)
    CHECK(o[i] == kOne);
  CHECK(strstr(kvbufModuleReport(module), "lane_instructions"));
  CHECK(strcmp(kvbufModuleRemarks(module), "") == 0);
  CHECK(kvbufDeviceSynchronize(device) == KVBUF_OK);

  /* The same through a plan, at other addresses. */
  kvbufPlan *plan = kvbufPlanCreate(module, tensors, 4, NULL, 0);
  CHECK(plan);
  static _Alignas(16) uint16_t moved[kQueries * kHeads * kSize];
  void *addresses[] = {q, k, v, moved};
  CHECK(kvbufPlanLaunch(plan, addresses, NULL) == KVBUF_OK);
  for (int i = 0; i < kQueries * kHeads * kSize; ++i)
    CHECK(moved[i] == kOne);
  addresses[3] = (char *)moved + 1;
  CHECK(kvbufPlanLaunch(plan, addresses, NULL) == KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "tensor 'o' starts at address"));
  addresses[3] = NULL;
  CHECK(kvbufPlanLaunch(plan, addresses, NULL) == KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "null address"));
  addresses[3] = o;
  memset(o, 0, sizeof(o));
  CHECK(kvbufPlanLaunch(plan, addresses, NULL) == KVBUF_OK);
  CHECK(o[0] == kOne && o[kQueries * kHeads * kSize - 1] == kOne);
  CHECK(kvbufPlanLaunch(plan, NULL, NULL) == KVBUF_BAD_INPUT);
  CHECK(kvbufPlanLaunch(NULL, addresses, NULL) == KVBUF_BAD_INPUT);
  kvbufPlanDestroy(plan);
  kvbufPlanDestroy(NULL);
  CHECK(kvbufXlaAdd(1, NULL, 0) == KVBUF_BAD_INPUT);
  CHECK(!kvbufPlanCreate(module, tensors, 3, NULL, 0));
  CHECK(strstr(kvbufLastError(), "missing tensor 'o'"));
  CHECK(!kvbufPlanCreate(NULL, tensors, 4, NULL, 0));

  CHECK(kvbufModuleLaunch(module, tensors, 3, NULL, 0, NULL) ==
        KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "missing tensor 'o'"));
  kvbufSize batch = {"batch", 2};
  CHECK(kvbufModuleLaunch(module, tensors, 4, &batch, 1, NULL) ==
        KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "where batch = 2"));

  /* Shapes, strides and addresses whose end no address reaches. */
  const int64_t hugeShape[] = {1, INT64_MAX, kHeads, kSize};
  tensors[0].shape = tensors[3].shape = hugeShape;
  CHECK(kvbufModuleLaunch(module, tensors, 4, NULL, 0, NULL) ==
        KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "exceeds 64-bit addressing"));
  const int64_t hugeStrides[] = {0, INT64_MAX / 16 * 16, kSize, 1};
  tensors[0].shape = tensors[3].shape = qShape;
  tensors[0].strides = hugeStrides;
  CHECK(kvbufModuleLaunch(module, tensors, 4, NULL, 0, NULL) ==
        KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "exceeds 64-bit addressing"));
  tensors[0].strides = NULL;
  tensors[0].data = (void *)(UINTPTR_MAX - 15);
  CHECK(kvbufModuleLaunch(module, tensors, 4, NULL, 0, NULL) ==
        KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "reaches beyond the end of memory"));

  tensors[0].data = NULL;
  CHECK(kvbufModuleLaunch(module, tensors, 4, NULL, 0, NULL) ==
        KVBUF_BAD_INPUT);
  CHECK(strstr(kvbufLastError(), "null address"));
  CHECK(kvbufModuleLaunch(NULL, tensors, 4, NULL, 0, NULL) == KVBUF_BAD_INPUT);

  kvbufModuleUnload(module);
  findFunctions(argv[3], device);
  kvbufDeviceClose(device);
  puts("ok");
  return 0;
}
