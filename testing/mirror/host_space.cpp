// Host memory and the steady clock.
#include "testing/mirror/host_space.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>

#include "engine/registry.hpp"
#include "engine/select.hpp"

namespace pagoda::mirror {
namespace {

constexpr std::align_val_t kAlignment{256};

class HostSpace final : public core::MemorySpace {
 public:
  [[nodiscard]] Device device() const override { return {}; }
  [[nodiscard]] core::SpaceFacts facts() const override { return {.name = "host", .driver = {}}; }

  [[nodiscard]] std::byte* allocate(int64_t bytes) override {
    return static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kAlignment));
  }
  void release(std::byte* memory) noexcept override { ::operator delete(memory, kAlignment); }
  [[nodiscard]] int64_t free_bytes() override { return 0; }

  void copy_in(std::byte* to, const void* from_host, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from_host, static_cast<size_t>(bytes));
  }
  void copy_out(void* to_host, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to_host, from, static_cast<size_t>(bytes));
  }
  void copy_within(std::byte* to, const std::byte* from, int64_t bytes) override {
    copy_in(to, from, bytes);
  }
  void fill(std::byte* to, std::byte value, int64_t bytes) override {
    if (bytes > 0) std::memset(to, std::to_integer<int>(value), static_cast<size_t>(bytes));
  }
  void wait() override {}

  [[nodiscard]] std::vector<double> time(int64_t repeats,
                                         const std::function<void()>& launch) override {
    using Clock = std::chrono::steady_clock;
    std::vector<double> seconds;
    for (int64_t i = 0; i < repeats; ++i) {
      const auto start = Clock::now();
      launch();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    return seconds;
  }
};

}  // namespace

core::MemorySpace& host_space() {
  static HostSpace space;
  return space;
}

core::MemorySpace& space_of(const std::string& backend) {
  const core::Backend* found = engine::find_backend(backend);
  if (found == nullptr) throw std::runtime_error("there is no back end " + backend);
  if (found->memory == DeviceType::kCpu) return host_space();
  if (std::string why = engine::unavailable_reason(*found); !why.empty()) {
    throw std::runtime_error("back end " + backend + " can't run here: " + why);
  }
  if (found->memory_space == nullptr) {
    throw std::runtime_error("back end " + backend + " gives no access to its memory");
  }
  return found->memory_space({found->memory, 0});
}

}  // namespace pagoda::mirror
