// Prints 18 properties of each CUDA device, one "name: value" a line, a device after the other.
// When the runtime cannot, the last lines are its error and both versions, and the exit code is not 0.
#include <cstdio>

#include <cuda_runtime.h>

namespace {

void print_version(const char *name, int version) {
  std::printf("%s: %d.%d\n", name, version / 1000, version % 1000 / 10);
}

void print_versions() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  print_version("CUDA driver version", driver);
  print_version("CUDA runtime version", runtime);
}

int fail(cudaError_t error) {
  std::printf("CUDA error: %d %s: %s\n", static_cast<int>(error), cudaGetErrorName(error), cudaGetErrorString(error));
  print_versions();
  return 2;
}

struct Attribute {
  const char *name;
  cudaDeviceAttr id;
};

// Attributes and not the fields of cudaDeviceProp: CUDA 13 has removed clockRate there.
const Attribute kAttributes[] = {
    {"Total amount of shared memory per block", cudaDevAttrMaxSharedMemoryPerBlock},
    {"Total number of registers available per block", cudaDevAttrMaxRegistersPerBlock},
    {"Warp size", cudaDevAttrWarpSize},
    {"Maximum number of threads per multiprocessor", cudaDevAttrMaxThreadsPerMultiProcessor},
    {"Maximum number of threads per block", cudaDevAttrMaxThreadsPerBlock},
    {"Max dimension size of a thread block X", cudaDevAttrMaxBlockDimX},
    {"Max dimension size of a thread block Y", cudaDevAttrMaxBlockDimY},
    {"Max dimension size of a thread block Z", cudaDevAttrMaxBlockDimZ},
    {"Max dimension size of a grid size X", cudaDevAttrMaxGridDimX},
    {"Max dimension size of a grid size Y", cudaDevAttrMaxGridDimY},
    {"Max dimension size of a grid size Z", cudaDevAttrMaxGridDimZ},
};

}  // namespace

int main() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return fail(error);
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties;
    error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess) return fail(error);
    std::printf("GPU Device ID: %d\n", device);
    std::printf("GPU Name: %s\n", properties.name);
    std::printf("GPU compute capability: %d.%d\n", properties.major, properties.minor);
    print_versions();
    std::printf("Global memory: %llu\n", static_cast<unsigned long long>(properties.totalGlobalMem));
    int clock_khz = 0;
    error = cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device);
    if (error != cudaSuccess) return fail(error);
    std::printf("Max clock rate: %f MHz\n", clock_khz / 1000.0);
    for (const Attribute &attribute : kAttributes) {
      int value = 0;
      error = cudaDeviceGetAttribute(&value, attribute.id, device);
      if (error != cudaSuccess) return fail(error);
      std::printf("%s: %d\n", attribute.name, value);
    }
    std::printf("\n");
  }
  return 0;
}
