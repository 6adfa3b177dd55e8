/* SPDX-License-Identifier: Apache-2.0 */
/* One model, two threads, a call each, run many times: every result has the bits of the first.
 *   model_threads model.so [file for a result of 8 rows] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/model.h>

enum { kCalls = 200, kRows = 8, kColumns = 64 };
static float x[kRows * kColumns];
static TVMModel* model;

struct result {
  float* data;
  size_t size;
};
static int run(TVMModelCall* call, int64_t rows, struct result* result) {
  int64_t shape[2] = {rows, kColumns};
  DLTensor tensor = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor* y;
  if (TVMModelSetInput(call, "x", &tensor) || TVMModelRun(call) || TVMModelGetOutput(call, 0, &y))
    return -1;
  result->size = sizeof(float);
  for (int32_t i = 0; i < y->ndim; ++i) result->size *= (size_t)y->shape[i];
  result->data = realloc(result->data, result->size);
  memcpy(result->data, (const char*)y->data + y->byte_offset, result->size);
  return 0;
}
static void* work(void* failure) {
  TVMModelCall* call;
  struct result first[kRows + 1] = {{NULL, 0}}, again = {NULL, 0};
  if (TVMModelNewCall(model, "main", &call)) goto failed;
  for (int i = 0; i < kCalls; ++i) {
    int rows = 1 + i % kRows;
    if (run(call, rows, i < kRows ? &first[rows] : &again)) goto failed;
    if (i >= kRows && memcmp(first[rows].data, again.data, again.size) != 0) {
      strcpy(failure, "a result differs from that of the first call");
      return NULL;
    }
  }
  TVMModelFreeCall(call);
  for (int i = 0; i <= kRows; ++i) free(first[i].data);
  free(again.data);
  return NULL;
failed:
  snprintf(failure, 1000, "%s", TVMModelError());
  return NULL;
}
static int write_result(const char* path) {
  TVMModelCall* call;
  struct result result = {NULL, 0};
  if (TVMModelNewCall(model, "main", &call) || run(call, kRows, &result)) return -1;
  FILE* file = fopen(path, "wb");
  int failed = !file || fwrite(result.data, 1, result.size, file) != result.size || fclose(file);
  TVMModelFreeCall(call);
  free(result.data);
  return failed;
}

int main(int argc, char** argv) {
  DLDevice cpu = {kDLCPU, 0};
  if (argc != 2 && argc != 3) return 2;
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = (float)(i % 7) - 3;
  if (TVMModelSetNumThreads(2) || TVMModelOpen(argv[1], cpu, &model)) {
    fprintf(stderr, "%s\n", TVMModelError());
    return 1;
  }
  char failures[2][1000] = {"", ""};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, failures[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  if (argc == 3 && write_result(argv[2])) return 1;
  TVMModelClose(model);
  for (int i = 0; i < 2; ++i) fputs(failures[i], stderr);
  return failures[0][0] || failures[1][0];
}
