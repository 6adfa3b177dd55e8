static int32_t main_compute_(int32_t* TVM_RESTRICT A, int32_t* TVM_RESTRICT B) {
  for (int32_t i = 0; i < 8; ++i) {
    for (int32_t j = 0; j < 8; ++j) {
      int32_t value = A[i * 8 + j] > 3 ? (int32_t)((uint32_t)((uint32_t)A[i * 8 + j] * (uint32_t)A[i * 8 + j]) - (uint32_t)1) : tvm_floordiv_i32(A[i * 8 + j], A[i * 8 + j]);
      B[i * 8 + j] = value;
    }
  }
  return 0;
}

#ifdef __cplusplus
}
#endif
