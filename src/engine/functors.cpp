// Two tables behind one lock: calls read them, registration appends.
#include "engine/functors.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace pagoda::engine {
namespace {

struct Entry {
  core::RegisteredFunctor functor;
  bool is_ambiguous = false;
};

struct Row {
  std::string functor;
  std::string backend;
  int32_t rank = 0;
  const core::Kernel* kernel = nullptr;
};

struct Tables {
  std::shared_mutex mutex;
  std::deque<Entry> functors;  // entries keep their address
  std::vector<Row> rows;       // ascending rank

  [[nodiscard]] Entry* find(std::string_view name) {
    const auto found = std::find_if(functors.begin(), functors.end(),
                                    [&](const Entry& entry) { return entry.functor.name == name; });
    return found == functors.end() ? nullptr : &*found;
  }
};

Tables& tables() {
  static Tables t;
  return t;
}

}  // namespace

void register_functor(core::RegisteredFunctor functor) {
  Tables& t = tables();
  const std::unique_lock lock(t.mutex);
  if (Entry* entry = t.find(functor.name)) {
    entry->is_ambiguous = true;
    return;
  }
  functor.number = static_cast<int32_t>(t.functors.size()) + 1;
  t.functors.push_back({std::move(functor)});
}

void register_functor_kernels(std::string_view functor, std::string_view backend, int32_t rank,
                              std::span<const core::Kernel> kernels) {
  Tables& t = tables();
  const std::unique_lock lock(t.mutex);
  for (const core::Kernel& kernel : kernels) {
    t.rows.push_back({std::string(functor), std::string(backend), rank, &kernel});
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [](const Row& a, const Row& b) { return a.rank < b.rank; });
}

const core::RegisteredFunctor* find_functor(std::string_view name) {
  Tables& t = tables();
  const std::shared_lock lock(t.mutex);
  const Entry* entry = t.find(name);
  return entry == nullptr ? nullptr : &entry->functor;
}

bool is_ambiguous(const core::RegisteredFunctor& functor) {
  Tables& t = tables();
  const std::shared_lock lock(t.mutex);
  return t.find(functor.name)->is_ambiguous;
}

std::string functor_names() {
  Tables& t = tables();
  const std::shared_lock lock(t.mutex);
  std::string names;
  for (const Entry& entry : t.functors) names += (names.empty() ? "" : ", ") + entry.functor.name;
  return names;
}

std::vector<const core::Kernel*> functor_kernels(std::string_view backend,
                                                 const core::RegisteredFunctor* functor) {
  Tables& t = tables();
  const std::shared_lock lock(t.mutex);
  std::vector<const core::Kernel*> kernels;
  for (const Row& row : t.rows) {
    if (row.backend != backend || (functor != nullptr && row.functor != functor->name)) continue;
    kernels.push_back(row.kernel);
  }
  return kernels;
}

}  // namespace pagoda::engine
