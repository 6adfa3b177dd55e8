/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a model with memory, threads and a log of this program's own, and says how they were used.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/model.h>

static size_t used, most;
static int allocations, tasks;
static void* take(void* self, size_t size, size_t alignment) {
  void* data = NULL;
  used += size;
  most = used > most ? used : most;
  ++*(int*)self;
  return posix_memalign(&data, alignment, size) ? NULL : data;
}
static void give(void* self, void* data, size_t size) {
  (void)self;
  used -= size;
  free(data);
}

struct part {
  void (*task)(void*, int32_t);
  void* data;
  int32_t begin, end;
};
static void* run_part(void* self) {
  struct part* part = self;
  for (int32_t i = part->begin; i < part->end; ++i) part->task(part->data, i);
  return NULL;
}
static void run(void* self, void (*task)(void*, int32_t), void* data, int32_t count) {
  struct part first = {task, data, 0, count / 2}, second = {task, data, count / 2, count};
  pthread_t thread;
  *(int*)self += count;
  pthread_create(&thread, NULL, run_part, &second);
  run_part(&first);
  pthread_join(thread, NULL);
}
static void log_text(void* self, const char* text) { printf("%s: %s", (const char*)self, text); }

static int fail(void) {
  fprintf(stderr, "%s\n", TVMModelError());
  return 1;
}
/* With a file: opens it; without: what is linked in. */
int main(int argc, char** argv) {
  DLDevice cpu = {kDLCPU, 0};
  TVMModelAllocator allocator = {&allocations, take, give};
  TVMModelThreadPool pool = {&tasks, 2, run};
  TVMModelThreadPool none = {NULL, 0, run};
  TVMModelAllocator half = {NULL, take, NULL};
  if (!TVMModelSetThreadPool(&none)) return 2;
  printf("%s\n", TVMModelError());
  if (!TVMModelSetAllocator(&half)) return 2;
  printf("%s\n", TVMModelError());
  if (TVMModelSetAllocator(&allocator) || TVMModelSetThreadPool(&pool) ||
      TVMModelSetLog(log_text, "log"))
    return fail();
  TVMModel* model;
  TVMModelCall* call;
  if (argc > 1 ? TVMModelOpen(argv[1], cpu, &model) : TVMModelOpenLinked("", cpu, &model))
    return fail();
  if (TVMModelNewCall(model, "main", &call)) return fail();
  static float x[256 * 256];
  for (int i = 0; i < 256 * 256; ++i) x[i] = (float)i;
  int64_t shape[2] = {256, 256};
  DLDataType f32 = {kDLFloat, 32, 1};
  DLTensor tensor = {x, cpu, 2, f32, shape, NULL, 0};
  const DLTensor* y;
  if (TVMModelSetInput(call, "x", &tensor) || TVMModelRun(call) || TVMModelGetOutput(call, 0, &y))
    return fail();
  const float* result = y->data;
  for (int i = 0; i < 256 * 256; ++i) {
    if (result[i] != x[i] * 2 + (float)(i % 256)) return 3;
  }
  int is_refused = TVMModelSetAllocator(NULL);
  printf("allocations %d, tasks %d, refused %d\n", allocations > 0, tasks > 0, is_refused);
  TVMModelFreeCall(call);
  TVMModelClose(model);
  if (TVMModelSetThreadPool(NULL)) return fail();
  return 0;
}
