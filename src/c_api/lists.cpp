// The lists of back ends and kernels.
#include <memory>
#include <utility>
#include <vector>

#include "c_api/attention.hpp"
#include "c_api/options.hpp"
#include "c_api/status.hpp"
#include "c_api/structs.hpp"
#include "engine/check.hpp"
#include "pagoda/backend.hpp"

struct pagoda_backend_list {
  std::vector<pagoda::BackendInfo> infos;
};
struct pagoda_kernel_list {
  std::vector<pagoda::KernelInfo> infos;
};

using namespace pagoda;  // NOLINT(google-build-using-namespace): definitions of C functions
using namespace pagoda::c_api;

namespace {

int32_t to_device_type(DeviceType type) {
  switch (type) {
    case DeviceType::kCpu: return PAGODA_CPU;
    case DeviceType::kCuda: return PAGODA_CUDA;
    case DeviceType::kHip: return PAGODA_ROCM;
  }
  return PAGODA_CPU;
}

template <typename List>
Status check_index(const List* list, int64_t index) {
  if (list == nullptr) return complain_null("list");
  if (index >= 0 && std::cmp_less(index, list->infos.size())) return {};
  return engine::complain("index", index,
                          "must be in [0, " + std::to_string(list->infos.size()) + ")");
}

}  // namespace

pagoda_status_code pagoda_backends(pagoda_backend_list** list, pagoda_status* status) {
  if (list != nullptr) *list = nullptr;
  return guarded_call(status, [&]() -> Status {
    if (list == nullptr) return complain_null("list");
    *list = new pagoda_backend_list{backends()};
    return {};
  });
}

int64_t pagoda_backend_list_size(const pagoda_backend_list* list) {
  return list == nullptr ? 0 : static_cast<int64_t>(list->infos.size());
}

pagoda_status_code pagoda_backend_list_get(const pagoda_backend_list* list, int64_t index,
                                           pagoda_backend_info* info, pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    if (Status s = check_index(list, index); !s) return s;
    const BackendInfo& from = list->infos[static_cast<size_t>(index)];
    return write_struct("info",
                        pagoda_backend_info{.struct_size = 0,
                                            .name = from.name.c_str(),
                                            .description = from.description.c_str(),
                                            .is_available = static_cast<int32_t>(from.is_available),
                                            .memory = to_device_type(from.memory)},
                        info);
  });
}

void pagoda_backend_list_destroy(pagoda_backend_list* list) { delete list; }

pagoda_status_code pagoda_explain(const pagoda_attention* attention, const pagoda_options* options,
                                  pagoda_kernel_list** list, pagoda_status* status) {
  if (list != nullptr) *list = nullptr;
  return guarded_call(status, [&]() -> Status {
    if (list == nullptr) return complain_null("list");
    Attention a;
    if (Status s = to_attention(attention, a); !s) return s;
    CallOptions call;
    if (Status s = to_options(options, call); !s) return s;
    Result<std::vector<KernelInfo>> infos = explain(a, call.options);
    if (!infos) return infos.status();
    *list = new pagoda_kernel_list{*std::move(infos)};
    return {};
  });
}

int64_t pagoda_kernel_list_size(const pagoda_kernel_list* list) {
  return list == nullptr ? 0 : static_cast<int64_t>(list->infos.size());
}

pagoda_status_code pagoda_kernel_list_get(const pagoda_kernel_list* list, int64_t index,
                                          pagoda_kernel_info* info, pagoda_status* status) {
  return guarded_call(status, [&]() -> Status {
    if (Status s = check_index(list, index); !s) return s;
    const KernelInfo& from = list->infos[static_cast<size_t>(index)];
    return write_struct("info",
                        pagoda_kernel_info{.struct_size = 0,
                                           .name = from.name.c_str(),
                                           .backend = from.backend.c_str(),
                                           .reason = from.reason.c_str(),
                                           .is_selected = static_cast<int32_t>(from.is_selected),
                                           .can_run = static_cast<int32_t>(from.can_run)},
                        info);
  });
}

void pagoda_kernel_list_destroy(pagoda_kernel_list* list) { delete list; }
