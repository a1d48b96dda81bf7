// The tensors of each call, one after the other.
#include "engine/placement.hpp"

#include <initializer_list>

#include "engine/check.hpp"

namespace pagoda::engine {
namespace {

std::string to_string(Device device) {
  if (device.type == DeviceType::kCpu) return name(device.type);
  return std::string(name(device.type)) + ":" + std::to_string(device.index);
}

struct Named {
  const char* name;
  const ConstTensor* tensor;
};

// The first tensor is the one that the others must be beside.
class Places {
 public:
  Places(const core::Backend& backend, Named first)
      : backend_(backend), first_(first.name), device_(first.tensor->device) {}

  [[nodiscard]] Status check(std::string_view name, const ConstTensor& tensor) const {
    if (!tensor.present() || is_right(tensor.device)) return {};
    const std::string field = std::string(name) + ".device";
    if (tensor.device.type == backend_.memory) {
      return complain(field, to_string(tensor.device),
                      "must be " + to_string(device_) + ", the device of " + first_);
    }
    const bool is_host = backend_.memory == DeviceType::kCpu;
    return complain(field, to_string(tensor.device),
                    "back end " + std::string(backend_.name) + " reads " +
                        (is_host ? "host" : "device") + " memory (" +
                        pagoda::name(backend_.memory) + ")");
  }
  [[nodiscard]] Status check_all(std::initializer_list<Named> tensors) const {
    for (const Named& named : tensors) {
      if (Status s = check(named.name, *named.tensor); !s) return s;
    }
    return {};
  }

 private:
  // An index means nothing on the host.
  [[nodiscard]] bool is_right(Device device) const {
    return device.type == backend_.memory && (device.type == DeviceType::kCpu || device == device_);
  }

  const core::Backend& backend_;
  const char* first_;
  Device device_;
};

bool has_tensor(const MaskNode& node) {
  return node.kind == MaskKind::kAdditive || node.kind == MaskKind::kRelativeBias;
}

}  // namespace

Status check_placement(const core::Backend& backend, const Attention& a) {
  if (!a.q.present()) return {};  // that will be the complaint
  const auto [k, v] = std::visit([](const auto& kv) { return std::pair(kv.k, kv.v); }, a.kv);
  const Places places(backend, {"q", &a.q});
  const ConstTensor out = a.out, lse = a.lse, row_max = a.row_max;
  if (Status s = places.check_all({{"q", &a.q},
                                   {"kv.k", &k},
                                   {"kv.v", &v},
                                   {"out", &out},
                                   {"lse", &lse},
                                   {"row_max", &row_max}});
      !s) {
    return s;
  }
  const std::vector<MaskNode>& nodes = a.mask.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!has_tensor(nodes[i])) continue;
    const std::string name = element_name("mask.nodes", static_cast<int64_t>(i)) + ".tensor";
    if (Status s = places.check(name, nodes[i].tensor); !s) return s;
  }
  return {};
}

Status check_placement(const core::Backend& backend, const AppendKV& a) {
  const ConstTensor k_cache = a.k_cache, v_cache = a.v_cache;
  return Places(backend, {"k_new", &a.k_new})
      .check_all(
          {{"k_new", &a.k_new}, {"v_new", &a.v_new}, {"k_cache", &k_cache}, {"v_cache", &v_cache}});
}

Status check_placement(const core::Backend& backend, const MergeStates& m) {
  const ConstTensor out = m.out, lse = m.lse;
  return Places(backend, {"partial_out", &m.partial_out})
      .check_all({{"partial_out", &m.partial_out},
                  {"partial_lse", &m.partial_lse},
                  {"out", &out},
                  {"lse", &lse}});
}

}  // namespace pagoda::engine
