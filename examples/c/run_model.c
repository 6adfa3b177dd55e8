/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an exported model, fills its inputs, runs it and prints what comes out. */
#include <stdio.h>
#include <stdlib.h>
#include <tvm/runtime/model.h>

static int fail(void) {
  fprintf(stderr, "%s\n", TVMModelError());
  return 1;
}
static void show(const char* what, const TVMModelValue* value) {
  printf("%s %s (", what, value->name);
  for (int32_t i = 0; i < value->ndim; ++i) {
    printf(i ? ", " : "");
    if (value->shape[i] >= 0) {
      printf("%lld", (long long)value->shape[i]);
    } else {
      printf("%s", value->dim_names[i] ? value->dim_names[i] : "?");
    }
  }
  printf(")\n");
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s model.so\n", argv[0]);
    return 2;
  }
  DLDevice cpu = {kDLCPU, 0};
  TVMModel* model;
  TVMModelCall* call;
  if (TVMModelOpen(argv[1], cpu, &model) || TVMModelNewCall(model, "main", &call)) return fail();

  /* Inputs of ones; an extent that may be any is 1. */
  for (int32_t i = 0; i < TVMModelNumInputs(call); ++i) {
    TVMModelValue value;
    if (TVMModelInput(call, i, &value)) return fail();
    show("input", &value);
    if (value.ndim < 0 || value.dtype.code != kDLFloat || value.dtype.bits != 32) {
      fprintf(stderr, "expected float32 of known rank as input %s\n", value.name);
      return 1;
    }
    int64_t* shape = malloc(sizeof(int64_t) * (size_t)(value.ndim + 1));
    int64_t count = 1;
    for (int32_t axis = 0; axis < value.ndim; ++axis) {
      shape[axis] = value.shape[axis] < 0 ? 1 : value.shape[axis];
      count *= shape[axis];
    }
    float* data = aligned_alloc(64, (size_t)((count * 4 + 63) / 64 * 64 + 64));
    for (int64_t k = 0; k < count; ++k) data[k] = 1;
    DLTensor tensor = {data, cpu, value.ndim, value.dtype, shape, NULL, 0};
    if (TVMModelSetInput(call, value.name, &tensor)) return fail();
  }
  if (TVMModelRun(call)) return fail();
  for (int32_t i = 0; i < TVMModelNumOutputs(call); ++i) {
    TVMModelValue value;
    const DLTensor* result;
    if (TVMModelOutput(call, i, &value) || TVMModelGetOutput(call, i, &result)) return fail();
    show("output", &value);
    const float* data = (const float*)((const char*)result->data + result->byte_offset);
    printf("  first element %.6f\n", (double)data[0]);
  }
  TVMModelFreeCall(call);
  TVMModelClose(model);
  return 0;
}
