// The table of back ends: rows are added, never moved or removed.
#include "engine/registry.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "backends/cpu/backend.hpp"
#include "backends/cuda/backend.hpp"
#include "backends/hip/backend.hpp"

namespace pagoda::engine {
namespace {

class Table {
 public:
  Table()
      : rows_{&cpu::backend(), &cpu::reference_backend(), &cuda::backend(), &hip::backend()},
        size_(4) {}

  [[nodiscard]] std::span<const core::Backend* const> rows() const {
    return {rows_.data(), size_.load(std::memory_order_acquire)};
  }
  Status add(const core::Backend& backend) {
    const std::lock_guard lock(adding_);
    for (const core::Backend* row : rows()) {
      if (row == &backend) return {};
      if (std::string_view(row->name) == backend.name) {
        return Status::invalid("backend", '"' + std::string(backend.name) + '"',
                               "another back end has that name");
      }
    }
    const size_t size = rows().size();
    if (size == kMaxBackends) {
      return Status::invalid(
          "backend", '"' + std::string(backend.name) + '"',
          "at most " + std::to_string(kMaxBackends) + " back ends can be registered");
    }
    rows_[size] = &backend;
    size_.store(size + 1, std::memory_order_release);
    return {};
  }

 private:
  std::array<const core::Backend*, kMaxBackends> rows_;
  std::atomic<size_t> size_;
  std::mutex adding_;
};

Table& table() {
  static Table t;
  return t;
}

}  // namespace

std::span<const core::Backend* const> registry() { return table().rows(); }

const core::Backend* find_backend(std::string_view name) {
  for (const core::Backend* backend : registry()) {
    if (name == backend->name) return backend;
  }
  return nullptr;
}

Result<const core::Backend*> backend_of(const Options& options, Device device) {
  const std::string_view wanted =
      options.backend.empty() ? std::string_view(name(device.type)) : options.backend;
  if (const core::Backend* backend = find_backend(wanted)) return backend;
  std::string names;
  for (const core::Backend* backend : registry()) {
    names += (names.empty() ? "" : ", ") + std::string(backend->name);
  }
  return Status(StatusCode::kNotFound, "backend",
                "backend is \"" + std::string(wanted) + "\"; this library has " + names);
}

Status register_backend(const core::Backend& backend) { return table().add(backend); }

}  // namespace pagoda::engine
