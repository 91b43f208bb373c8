/* Part of the kvbuf project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a launch of a plan costs the host, beside the driver's own launch of a
 * kernel that does nothing. Prints JSON, in microseconds a launch.
 *
 *   overhead ARTIFACT ROUNDS CALLS    (8 heads on 2 of 128, dense)
 */

#define _GNU_SOURCE
#include "kvbuffer-c/Runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "overhead: line %d: %s: %s\n", __LINE__, #condition,     \
              kvbufLastError());                                               \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void print(const char *name, double *values, int count,
                  const char *end) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  printf("\"%s\": {\"minimum\": %.3f, \"median\": %.3f}%s", name, values[0],
         values[count / 2], end);
}

/* The driver's functions, declared after its public description. */
static int (*primaryRetain)(void **, int);
static int (*ctxSetCurrent)(void *);
static int (*memAlloc)(uint64_t *, size_t);
static int (*moduleLoadData)(void **, const void *);
static int (*moduleGetFunction)(void **, void *, const char *);
static int (*launchKernel)(void *, unsigned, unsigned, unsigned, unsigned,
                           unsigned, unsigned, unsigned, void *, void **,
                           void **);

static const char *const kEmpty = ".version 8.0\n.target sm_80\n"
                                  ".address_size 64\n"
                                  ".visible .entry empty() { ret; }\n";

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: overhead ARTIFACT ROUNDS CALLS\n");
    return 2;
  }
  int rounds = atoi(argv[2]), calls = atoi(argv[3]);
  CHECK(rounds > 0 && calls > 0);
  kvbufArtifact *artifact = kvbufArtifactOpenFile(argv[1]);
  CHECK(artifact);
  kvbufDevice *device = kvbufDeviceOpen("cuda", NULL);
  CHECK(device);
  kvbufModule *module = kvbufModuleLoad(device, artifact);
  CHECK(module);

  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(cuda);
  *(void **)&primaryRetain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
  *(void **)&ctxSetCurrent = dlsym(cuda, "cuCtxSetCurrent");
  *(void **)&memAlloc = dlsym(cuda, "cuMemAlloc_v2");
  *(void **)&moduleLoadData = dlsym(cuda, "cuModuleLoadData");
  *(void **)&moduleGetFunction = dlsym(cuda, "cuModuleGetFunction");
  *(void **)&launchKernel = dlsym(cuda, "cuLaunchKernel");
  void *context = NULL, *empty = NULL, *code = NULL;
  CHECK(primaryRetain && primaryRetain(&context, 0) == 0);
  CHECK(ctxSetCurrent && ctxSetCurrent(context) == 0);
  CHECK(moduleLoadData && moduleLoadData(&code, kEmpty) == 0);
  CHECK(moduleGetFunction && moduleGetFunction(&empty, code, "empty") == 0);
  CHECK(memAlloc && launchKernel);

  const int64_t q[] = {1, 64, 8, 128}, k[] = {1, 64, 2, 128};
  kvbufTensor tensors[] = {{"q", NULL, "bf16", 4, q, NULL},
                           {"k", NULL, "bf16", 4, k, NULL},
                           {"v", NULL, "bf16", 4, k, NULL},
                           {"o", NULL, "bf16", 4, q, NULL}};
  /* Two sets, so that addresses change from call to call. */
  void *data[2][4];
  for (int set = 0; set < 2; ++set)
    for (int i = 0; i < 4; ++i) {
      uint64_t address = 0;
      CHECK(memAlloc(&address, 64 * 8 * 128 * 2) == 0);
      data[set][i] = (void *)address;
    }
  for (int i = 0; i < 4; ++i)
    tensors[i].data = data[0][i];
  kvbufPlan *plan = kvbufPlanCreate(module, tensors, 4, NULL, 0);
  CHECK(plan);

  double *plans = malloc(sizeof(double) * (size_t)rounds);
  double *empties = malloc(sizeof(double) * (size_t)rounds);
  CHECK(plans && empties);
  for (int round = -2; round < rounds; ++round) {
    double begin = now();
    for (int i = 0; i < calls; ++i)
      CHECK(kvbufPlanLaunch(plan, data[i % 2], NULL) == KVBUF_OK);
    double middle = now();
    CHECK(kvbufDeviceSynchronize(device) == KVBUF_OK);
    double again = now();
    for (int i = 0; i < calls; ++i)
      launchKernel(empty, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL);
    double end = now();
    CHECK(kvbufDeviceSynchronize(device) == KVBUF_OK);
    if (round < 0)
      continue;
    plans[round] = (middle - begin) / calls;
    empties[round] = (end - again) / calls;
  }
  printf("{");
  print("launch, from C", plans, rounds, ", ");
  print("the driver's launch of an empty kernel", empties, rounds, "}\n");
  kvbufPlanDestroy(plan);
  kvbufModuleUnload(module);
  kvbufDeviceClose(device);
  kvbufArtifactClose(artifact);
  return 0;
}
