/* SPDX-License-Identifier: Apache-2.0 */
/* Running compiled models from C. No C++ here; link with libtvm_runtime.
 *
 *   TVMModel* model;
 *   TVMModelCall* call;
 *   if (TVMModelOpen("model.so", cpu, &model) || TVMModelNewCall(model, "main", &call)) …
 *   TVMModelSetInput(call, "x", &x);
 *   if (TVMModelRun(call)) puts(TVMModelError());
 *   TVMModelGetOutput(call, 0, &y);
 *
 * Functions that return int return 0, or -1 and leave a text for TVMModelError. A model may be used
 * by several threads at once, a call by one at a time. */
#pragma once
#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMModel TVMModel;
typedef struct TVMModelCall TVMModelCall;

/* What goes in or comes out. The texts and arrays belong to the model. */
typedef struct {
  const char* name;
  DLDataType dtype;             /* code and bits are 0 where it may be any */
  int32_t ndim;                 /* -1: any */
  const int64_t* shape;         /* -1: any extent; NULL where ndim is -1 */
  const char* const* dim_names; /* of extents that may be any, NULL for others: those of one name
                                   are equal; NULL where ndim is -1 */
} TVMModelValue;

/* Of the last function that failed in this thread; valid until the next one does. */
const char* TVMModelError(void);

/* An exported library, from a file or from memory. */
int TVMModelOpen(const char* path, DLDevice device, TVMModel** model);
int TVMModelOpenBytes(const void* bytes, size_t size, DLDevice device, TVMModel** model);
/* A model that is linked into the program: one that was built with system_lib=True, or whose header
 * has registered it. There is one for each prefix of names, "" for most. */
int TVMModelOpenLinked(const char* prefix, DLDevice device, TVMModel** model);
/* Calls that were made keep what they need. */
void TVMModelClose(TVMModel* model);

/* ---- the whole process ---- */
/* Threads that work on one call. */
int TVMModelSetNumThreads(int32_t count);

/* Where the memory of tensors on the CPU comes from. It can be changed as long as there are none:
 * best before the first model is opened. NULL goes back to the runtime's own. */
typedef struct {
  void* self;
  void* (*alloc)(void* self, size_t size, size_t alignment); /* NULL when there is none */
  void (*free)(void* self, void* data, size_t size);
} TVMModelAllocator;
int TVMModelSetAllocator(const TVMModelAllocator* allocator);

/* Who runs parallel loops. NULL goes back to the runtime's own. */
typedef struct {
  void* self;
  int32_t num_threads; /* a loop is cut into about so many tasks */
  /* Calls task(data, index) for each index below count, each once, in any order and on any
   * threads, and returns when all have ended. */
  void (*run)(void* self, void (*task)(void* data, int32_t index), void* data, int32_t count);
} TVMModelThreadPool;
int TVMModelSetThreadPool(const TVMModelThreadPool* pool);

/* Who gets what models print; NULL: the standard output. */
int TVMModelSetLog(void (*write)(void* self, const char* text), void* self);

/* A function of the model, most often "main", with its inputs and outputs. */
int TVMModelNewCall(TVMModel* model, const char* function, TVMModelCall** call);
void TVMModelFreeCall(TVMModelCall* call);
int32_t TVMModelNumInputs(const TVMModelCall* call);
int32_t TVMModelNumOutputs(const TVMModelCall* call); /* tuples of results count one by one */
int TVMModelInput(const TVMModelCall* call, int32_t index, TVMModelValue* value);
int TVMModelOutput(const TVMModelCall* call, int32_t index, TVMModelValue* value);

/* The tensor is not copied: its memory must be there while the call runs, and as long as results
 * are used that may be views of it. */
int TVMModelSetInput(TVMModelCall* call, const char* name, const DLTensor* tensor);
/* Inputs stay set for the next run. */
int TVMModelRun(TVMModelCall* call);
/* Of the last run; valid until the next one, or until the call is freed. */
int TVMModelGetOutput(TVMModelCall* call, int32_t index, const DLTensor** tensor);

#ifdef __cplusplus
}
#endif
