// The device memory is mapped without access, except while a kernel or copy of the device runs.
#include "testing/mirror/fake_device.hpp"

#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>
#include <sys/mman.h>

#include "backends/cpu/backend.hpp"
#include "backends/cpu/reference.hpp"
#include "engine/registry.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::mirror {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kZeroed = 64, kWorkspace = 192;

// One device for the process; tests use it from one thread.
struct Fake {
  std::map<std::byte*, int64_t> blocks;
  int64_t allocated = 0;
  int64_t limit = std::numeric_limits<int64_t>::max();
  int64_t runs = 0;
  std::function<void(const core::Problem&, int64_t)> fault;
};

Fake& fake() {
  static Fake device;
  return device;
}

// Grants access to the device memory while it lives.
class AtWork {
 public:
  AtWork() { protect(PROT_READ | PROT_WRITE); }
  ~AtWork() { protect(PROT_NONE); }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  static void protect(int permission) {
    for (const auto& [data, bytes] : fake().blocks) {
      mprotect(data, static_cast<size_t>(bytes), permission);
    }
  }
};

class FakeSpace final : public core::MemorySpace {
 public:
  [[nodiscard]] Device device() const override { return {DeviceType::kCuda, 0}; }
  [[nodiscard]] core::SpaceFacts facts() const override {
    return {.name = "no GPU at all", .driver = "none"};
  }
  [[nodiscard]] std::byte* allocate(int64_t bytes) override {
    const int64_t whole = (bytes + kPage - 1) / kPage * kPage;
    if (fake().allocated + whole > fake().limit) throw std::bad_alloc();
    void* p = mmap(nullptr, static_cast<size_t>(whole), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    fake().blocks[static_cast<std::byte*>(p)] = whole;
    fake().allocated += whole;
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* memory) noexcept override {
    const auto block = fake().blocks.find(memory);
    munmap(memory, static_cast<size_t>(block->second));
    fake().allocated -= block->second;
    fake().blocks.erase(block);
  }
  [[nodiscard]] int64_t free_bytes() override { return fake().limit - fake().allocated; }
  void copy_in(std::byte* to, const void* from_host, int64_t bytes) override {
    const AtWork at_work;
    host_space().copy_in(to, from_host, bytes);
  }
  void copy_out(void* to_host, const std::byte* from, int64_t bytes) override {
    const AtWork at_work;
    host_space().copy_out(to_host, from, bytes);
  }
  void copy_within(std::byte* to, const std::byte* from, int64_t bytes) override {
    copy_in(to, from, bytes);
  }
  // Touches only the ends of large memory, which would otherwise be allocated.
  void fill(std::byte* to, std::byte value, int64_t bytes) override {
    const AtWork at_work;
    constexpr int64_t kMost = int64_t{64} << 20;
    host_space().fill(to, value, std::min(bytes, kMost));
    if (bytes > kMost) host_space().fill(to + bytes - kPage, value, kPage);
  }
  void wait() override {}
  [[nodiscard]] std::vector<double> time(int64_t repeats,
                                         const std::function<void()>& launch) override {
    return host_space().time(repeats, launch);
  }
};

core::MemorySpace& fake_space(Device /*device*/) {
  static FakeSpace space;
  return space;
}

const core::Kernel kKernel{
    .name = "fake.reference",
    .backend = kFakeDevice,
    .fit =
        [](const core::Kernel&, const core::Problem& p, const Options&, std::string* reason) {
          if (p.score_mod.functor == nullptr) return core::Fit::kServes;
          return core::unfit(core::Fit::kFeatures, reason,
                             [] { return "a device can't call the host's functions"; });
        },
    .plan = [](const core::Kernel&, const core::Problem&,
               const Options&) -> Result<std::unique_ptr<core::KernelPlan>> {
      auto plan = std::make_unique<core::KernelPlan>();
      plan->workspace_bytes = kWorkspace;
      plan->zeroed_workspace_bytes = kZeroed;
      return plan;
    },
    .run =
        [](const core::Kernel&, const core::KernelPlan&, const core::Problem& problem,
           std::span<std::byte> workspace, const core::RunContext&) {
          const AtWork at_work;
          for (const std::byte b : workspace.first(kZeroed)) {
            if (b != std::byte{0})
              throw std::runtime_error("the workspace does not begin with zeros");
          }
          std::memset(workspace.data() + kZeroed, 0xff, workspace.size() - kZeroed);
          core::Problem open = problem;
          open.has_host_lengths = true;
          cpu::reference_attention(open);
          if (fake().fault) fake().fault(open, ++fake().runs);
        }};

Status fake_append_kv(const AppendKV& append, const core::RunContext& context) {
  const AtWork at_work;
  return cpu::backend().append_kv(append, context);
}

Status fake_merge_states(const MergeStates& merge, const core::RunContext& context) {
  const AtWork at_work;
  return cpu::backend().merge_states(merge, context);
}

void fake_zero_padding_rows(const core::Problem& problem, const core::RunContext& context) {
  const AtWork at_work;
  cpu::backend().zero_padding_rows(problem, context);
}

std::string misplaced(const void* data, Device /*device*/) {
  const auto* at = static_cast<const std::byte*>(data);
  for (const auto& [block, bytes] : fake().blocks) {
    if (at >= block && at < block + bytes) return {};
  }
  return "host memory";
}

Result<std::span<std::byte>> keep_workspace(core::WorkspaceSize size, Device device,
                                            Stream /*stream*/) {
  static std::byte* kept = [&] {
    std::byte* memory = fake_space(device).allocate(kWorkspace);
    fake_space(device).fill(memory, std::byte{0}, kZeroed);
    return memory;
  }();
  return std::span(kept, static_cast<size_t>(size.bytes));
}

}  // namespace

Status register_fake_device() {
  static const core::Backend kBackend{
      .name = kFakeDevice,
      .memory = DeviceType::kCuda,
      .kernels = [] { return std::span<const core::Kernel>(&kKernel, 1); },
      .description = [] { return std::string("a device without hardware"); },
      .append_kv = fake_append_kv,
      .merge_states = fake_merge_states,
      .zero_padding_rows = fake_zero_padding_rows,
      .misplaced = misplaced,
      .keep_workspace = keep_workspace,
      .memory_space = fake_space};
  return engine::register_backend(kBackend);
}

void set_fake_memory_limit(int64_t bytes) {
  fake().limit = bytes > 0 ? bytes : std::numeric_limits<int64_t>::max();
}

void set_fake_fault(std::function<void(const core::Problem&, int64_t)> fault) {
  fake().fault = std::move(fault);
  fake().runs = 0;
}

int64_t fake_allocations() { return std::ssize(fake().blocks); }

}  // namespace pagoda::mirror
