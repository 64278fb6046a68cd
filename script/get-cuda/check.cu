// Proves that a toolkit is whole: a kernel, the half precision header (which needs the C++ core libraries) and linking
// with the runtime. It is compiled, not run: that would need a GPU.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void twice(__half *values) { values[threadIdx.x] = __hadd(values[threadIdx.x], values[threadIdx.x]); }

int main() {
  int count = 0;
  twice<<<1, 1>>>(nullptr);
  return cudaGetDeviceCount(&count) == cudaSuccess ? 0 : 1;
}
