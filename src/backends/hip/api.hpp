// The HIP runtime as the code that both GPU back ends share calls it (backends/gpu).
#pragma once

#include <string>

#include "arch/hip/device.hpp"
#include "backends/hip/devices.hpp"
#include "core/memory_space.hpp"

namespace pagoda::hip {

struct Api {
  static constexpr const char* kBackend = "hip";
  static constexpr DeviceType kDeviceType = DeviceType::kHip;
  using Guard = arch::DeviceGuard;
  using Stream = arch::HipStream;
  using Event = arch::HipEvent;

  static std::string unsupported_reason(Device device) { return hip::unsupported_reason(device); }
  static core::SpaceFacts facts(int32_t index) {
    const arch::DeviceProperties& found = arch::devices()[static_cast<size_t>(index)];
    return {.name = found.name,
            .driver = driver(),
            .num_multiprocessors = found.num_cus,
            .l2_bytes = found.l2_bytes,
            .memory_bytes = found.memory_bytes};
  }

  static void* allocate(size_t bytes) {
    void* memory = nullptr;
    arch::check(arch::runtime().Malloc(&memory, bytes), "allocating");
    return memory;
  }
  // MemorySpace::wait() reports asynchronous errors.
  static void free(void* memory) noexcept { static_cast<void>(arch::runtime().Free(memory)); }
  static void free_on(int32_t index, void* memory) noexcept {
    int before = 0;
    static_cast<void>(arch::runtime().GetDevice(&before));
    static_cast<void>(arch::runtime().SetDevice(index));
    free(memory);
    static_cast<void>(arch::runtime().SetDevice(before));
  }
  static int64_t free_bytes() {
    size_t free = 0, total = 0;
    arch::check(arch::runtime().MemGetInfo(&free, &total), "querying the free memory");
    return static_cast<int64_t>(free);
  }

  static void copy_in(void* to, const void* from, size_t bytes) {
    arch::check(arch::runtime().Memcpy(to, from, bytes, arch::HipCopy::kHostToDevice),
                "copying to the device");
  }
  static void copy_out(void* to, const void* from, size_t bytes) {
    arch::check(arch::runtime().Memcpy(to, from, bytes, arch::HipCopy::kDeviceToHost),
                "copying from the device");
  }
  static void copy_within(void* to, const void* from, size_t bytes) {
    arch::check(
        arch::runtime().MemcpyAsync(to, from, bytes, arch::HipCopy::kDeviceToDevice, nullptr),
        "copying on the device");
  }
  static void fill(void* to, int value, size_t bytes) {
    arch::check(arch::runtime().MemsetAsync(to, value, bytes, nullptr),
                "filling memory of the device");
  }
  static void wait() { arch::check(arch::runtime().DeviceSynchronize(), "waiting for the device"); }

  static arch::HipEvent create_event() {
    arch::HipEvent event = nullptr;
    arch::check(arch::runtime().EventCreate(&event), "creating an event");
    return event;
  }
  static void destroy(arch::HipEvent event) noexcept {
    static_cast<void>(arch::runtime().EventDestroy(event));
  }
  static void record(arch::HipEvent event) {
    arch::check(arch::runtime().EventRecord(event, nullptr), "recording an event");
  }
  static double seconds_between(arch::HipEvent begin, arch::HipEvent end) {
    float milliseconds = 0;
    arch::check(arch::runtime().EventElapsedTime(&milliseconds, begin, end),
                "querying an elapsed time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

  static bool is_captured(arch::HipStream stream) {
    int32_t status = 0;
    arch::check(arch::runtime().StreamIsCapturing(stream, &status),
                "querying the capture status of a stream");
    return status != 0;
  }
  // Before ROCm 7 the handle: destroying a stream waits for its work (hipStreamDestroy), so that a
  // stream with a reused handle may share the workspace.
  static unsigned long long stream_id(arch::HipStream stream) {
    if (arch::runtime().StreamGetId == nullptr) return reinterpret_cast<uintptr_t>(stream);
    unsigned long long id = 0;
    arch::check(arch::runtime().StreamGetId(stream, &id), "querying the id of a stream");
    return id;
  }
  static void clear(void* memory, size_t bytes, arch::HipStream stream) {
    arch::check(arch::runtime().MemsetAsync(memory, 0, bytes, stream), "clearing a workspace");
  }
};

}  // namespace pagoda::hip
