// A GPU's memory as core::MemorySpace, all in its default stream; the CUDA and the HIP back end
// differ in the runtime functions.
//
// `Api`: struct with
//   kDeviceType, Guard, Event      Guard(index): makes a device current, restores the one before
//   facts(device), unsupported_reason(device)
//   allocate(bytes), free_on(device, memory) noexcept, free_bytes()
//   allocate_staging(bytes), free_staging(memory) noexcept      optional: MemorySpace
//   copy_in(to, from, bytes), copy_out(to, from, bytes), copy_within(to, from, bytes)
//   fill(to, value, bytes), wait(), create_event(), destroy(event) noexcept, record(event),
//   seconds_between(begin, end)
// They work on the current device, and throw on its errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/memory_space.hpp"

namespace pagoda::gpu {

// Several times the L2 cache of any current GPU.
inline constexpr int64_t kFlushBytes = int64_t{256} << 20;

template <class Api>
class Event {
 public:
  Event() : event_(Api::create_event()) {}
  ~Event() {
    if (event_ != nullptr) Api::destroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() const { Api::record(event_); }
  [[nodiscard]] double seconds_since(const Event& before) const {
    return Api::seconds_between(before.event_, event_);
  }

 private:
  typename Api::Event event_ = nullptr;
};

template <class Api>
class GpuMemory final : public core::MemorySpace {
 public:
  explicit GpuMemory(int32_t index) : index_(index) {}

  [[nodiscard]] Device device() const override { return {Api::kDeviceType, index_}; }
  [[nodiscard]] core::SpaceFacts facts() const override { return Api::facts(index_); }

  [[nodiscard]] std::byte* allocate(int64_t bytes) override {
    const Guard guard(index_);
    return static_cast<std::byte*>(Api::allocate(static_cast<size_t>(bytes)));
  }
  void release(std::byte* memory) noexcept override { Api::free_on(index_, memory); }
  [[nodiscard]] int64_t free_bytes() override {
    const Guard guard(index_);
    return Api::free_bytes();
  }

  [[nodiscard]] std::byte* allocate_staging(int64_t bytes) override {
    if constexpr (kHasStaging) {
      const Guard guard(index_);
      return static_cast<std::byte*>(Api::allocate_staging(static_cast<size_t>(bytes)));
    }
    return MemorySpace::allocate_staging(bytes);
  }
  void release_staging(std::byte* memory) noexcept override {
    if constexpr (kHasStaging) {
      Api::free_staging(memory);
    } else {
      MemorySpace::release_staging(memory);
    }
  }

  void copy_in(std::byte* to, const void* from_host, int64_t bytes) override {
    if (bytes == 0) return;
    const Guard guard(index_);
    Api::copy_in(to, from_host, static_cast<size_t>(bytes));
  }
  void copy_out(void* to_host, const std::byte* from, int64_t bytes) override {
    if (bytes == 0) return;
    const Guard guard(index_);
    Api::copy_out(to_host, from, static_cast<size_t>(bytes));
  }
  void copy_within(std::byte* to, const std::byte* from, int64_t bytes) override {
    const Guard guard(index_);
    Api::copy_within(to, from, static_cast<size_t>(bytes));
  }
  void fill(std::byte* to, std::byte value, int64_t bytes) override {
    if (bytes == 0) return;
    const Guard guard(index_);
    Api::fill(to, std::to_integer<int>(value), static_cast<size_t>(bytes));
  }
  void wait() override {
    const Guard guard(index_);
    Api::wait();
  }

  // The host enqueues the run while the flush executes, so host time is not measured.
  [[nodiscard]] std::vector<double> time(int64_t repeats,
                                         const std::function<void()>& launch) override {
    const Guard guard(index_);
    if (flush_ == nullptr) flush_ = allocate(kFlushBytes);
    std::vector<Event<Api>> begins(static_cast<size_t>(repeats)), ends(begins.size());
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
  using Guard = typename Api::Guard;
  static constexpr bool kHasStaging = requires { Api::allocate_staging(size_t{1}); };

  int32_t index_;
  std::byte* flush_ = nullptr;  // never freed: the driver may be unloaded before static objects
};

// Lives as long as the process. Throws if there is no such GPU.
template <class Api>
[[nodiscard]] core::MemorySpace& memory_space(Device device) {
  struct Spaces {
    std::mutex mutex;
    std::map<int32_t, std::unique_ptr<GpuMemory<Api>>> of_index;
  };
  static auto* spaces = new Spaces;
  if (const std::string reason = Api::unsupported_reason(device); !reason.empty()) {
    throw std::runtime_error(reason);
  }
  const std::lock_guard lock(spaces->mutex);
  std::unique_ptr<GpuMemory<Api>>& space = spaces->of_index[device.index];
  if (!space) space = std::make_unique<GpuMemory<Api>>(device.index);
  return *space;
}

}  // namespace pagoda::gpu
