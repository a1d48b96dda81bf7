// Allocates, copies and times on a GPU, all in its default stream.
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "arch/ptx/device.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/memory_space.hpp"

namespace pagoda::cuda {
namespace {

using arch::check;
using arch::DeviceGuard;

// Several times the L2 cache of any current GPU.
constexpr size_t kFlushBytes = size_t{256} << 20;

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "creating an event"); }
  ~Event() {
    if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() const { check(cudaEventRecord(event_, nullptr), "recording an event"); }
  [[nodiscard]] double seconds_since(const Event& before) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, before.event_, event_), "querying an elapsed time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class GpuMemory final : public core::MemorySpace {
 public:
  explicit GpuMemory(int32_t index) : index_(index) {}

  [[nodiscard]] Device device() const override { return {DeviceType::kCuda, index_}; }

  [[nodiscard]] core::SpaceFacts facts() const override {
    const arch::DeviceProperties& found = arch::devices()[static_cast<size_t>(index_)];
    return {.name = found.name,
            .driver = driver(),
            .num_multiprocessors = found.num_sms,
            .l2_bytes = found.l2_bytes,
            .memory_bytes = found.memory_bytes};
  }

  [[nodiscard]] std::byte* allocate(int64_t bytes) override {
    const DeviceGuard guard(index_);
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<size_t>(bytes)), "allocating");
    return static_cast<std::byte*>(memory);
  }

  void release(std::byte* memory) noexcept override {
    int before = 0;
    static_cast<void>(cudaGetDevice(&before));
    static_cast<void>(cudaSetDevice(index_));
    static_cast<void>(cudaFree(memory));  // wait() reports asynchronous errors
    static_cast<void>(cudaSetDevice(before));
  }

  [[nodiscard]] int64_t free_bytes() override {
    const DeviceGuard guard(index_);
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "querying the free memory");
    return static_cast<int64_t>(free);
  }

  void copy_in(std::byte* to, const void* from_host, int64_t bytes) override {
    copy(to, from_host, bytes, cudaMemcpyHostToDevice, "copying to the device");
  }
  void copy_out(void* to_host, const std::byte* from, int64_t bytes) override {
    copy(to_host, from, bytes, cudaMemcpyDeviceToHost, "copying from the device");
  }
  void copy_within(std::byte* to, const std::byte* from, int64_t bytes) override {
    const DeviceGuard guard(index_);
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, nullptr),
          "copying on the device");
  }
  void fill(std::byte* to, std::byte value, int64_t bytes) override {
    if (bytes == 0) return;
    const DeviceGuard guard(index_);
    check(cudaMemsetAsync(to, std::to_integer<int>(value), static_cast<size_t>(bytes), nullptr),
          "filling memory of the device");
  }
  void wait() override {
    const DeviceGuard guard(index_);
    check(cudaDeviceSynchronize(), "waiting for the device");
  }

  // The host enqueues the run while the flush executes, so host time is not measured.
  [[nodiscard]] std::vector<double> time(int64_t repeats,
                                         const std::function<void()>& launch) override {
    const DeviceGuard guard(index_);
    if (flush_ == nullptr) flush_ = allocate(kFlushBytes);
    std::vector<Event> begins(static_cast<size_t>(repeats)), ends(static_cast<size_t>(repeats));
    for (size_t i = 0; i < begins.size(); ++i) {
      fill(flush_, static_cast<std::byte>(i), kFlushBytes);
      begins[i].record();
      launch();
      ends[i].record();
    }
    wait();
    std::vector<double> seconds;
    for (size_t i = 0; i < begins.size(); ++i) {
      seconds.push_back(ends[i].seconds_since(begins[i]));
    }
    return seconds;
  }

 private:
  void copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, const char* what) {
    if (bytes == 0) return;
    const DeviceGuard guard(index_);
    check(cudaMemcpy(to, from, static_cast<size_t>(bytes), kind), what);
  }

  int32_t index_;
  std::byte* flush_ = nullptr;  // never freed: the driver may be unloaded before static objects
};

}  // namespace

core::MemorySpace& memory_space(Device device) {
  struct Spaces {
    std::mutex mutex;
    std::map<int32_t, std::unique_ptr<GpuMemory>> of_index;
  };
  static auto* spaces = new Spaces;
  if (const std::string reason = unsupported_reason(device); !reason.empty()) {
    throw std::runtime_error(reason);
  }
  const std::lock_guard lock(spaces->mutex);
  std::unique_ptr<GpuMemory>& space = spaces->of_index[device.index];
  if (!space) space = std::make_unique<GpuMemory>(device.index);
  return *space;
}

}  // namespace pagoda::cuda
