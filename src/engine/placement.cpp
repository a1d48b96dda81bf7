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

namespace {

// Asks about one pointer after the other, until one is wrong.
class Pointers {
 public:
  Pointers(const core::Backend& backend, Device device) : backend_(backend), device_(device) {}

  Pointers& look(std::string_view name, const void* data) {
    if (!status_ || data == nullptr) return *this;
    const std::string why = backend_.misplaced(data, device_);
    if (!why.empty())
      status_ = complain(std::string(name), why, "must be on " + to_string(device_));
    return *this;
  }
  Pointers& look(std::string_view name, const ConstTensor& tensor) {
    return tensor.present() ? look(name, tensor.data) : *this;
  }
  template <typename T>
  Pointers& look(std::string_view name, std::span<const T> values) {
    return values.empty() ? *this : look(name, static_cast<const void*>(values.data()));
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const core::Backend& backend_;
  Device device_;
  Status status_;
};

void look_at(Pointers& pointers, const DenseKV& kv) {
  pointers.look("kv.seqlens_kv", kv.seqlens_kv);
}
void look_at(Pointers& pointers, const RaggedKV& kv) {
  pointers.look("kv.cu_seqlens_kv", kv.cu_seqlens_kv);
}
void look_at(Pointers& pointers, const PagedKV& kv) {
  if (const auto* table = std::get_if<BlockTable>(&kv.table)) {
    pointers.look("kv.table.pages", static_cast<const void*>(table->pages))
        .look("kv.table.seqlens_kv", table->seqlens_kv);
    return;
  }
  const auto& csr = std::get<CsrPages>(kv.table);
  pointers.look("kv.table.indptr", csr.indptr)
      .look("kv.table.indices", csr.indices)
      .look("kv.table.last_page_len", csr.last_page_len);
}
void look_at(Pointers& pointers, const KVScales& scales) {
  pointers.look("kv_scales.k_per_head", scales.k_per_head)
      .look("kv_scales.v_per_head", scales.v_per_head);
}
void look_at(Pointers& pointers, const std::string& field, const MaskNode& node) {
  pointers.look(field + ".valid_lengths", node.valid_lengths)
      .look(field + ".words", static_cast<const void*>(node.words))
      .look(field + ".row_offsets", node.row_offsets);
  if (has_tensor(node)) pointers.look(field + ".tensor.data", node.tensor);
}

}  // namespace

Status check_pointers(const core::Backend& backend, const Attention& a) {
  if (backend.misplaced == nullptr) return {};
  Pointers pointers(backend, a.q.device);
  pointers.look("q.data", a.q)
      .look("out.data", a.out)
      .look("lse.data", a.lse)
      .look("row_max.data", a.row_max)
      .look("cu_seqlens_q", a.cu_seqlens_q)
      .look("seqlens_q", a.seqlens_q)
      .look("cache_lengths", a.cache_lengths)
      .look("sinks", a.sinks)
      .look("score_mod.alibi_slopes", a.score_mod.alibi_slopes);
  std::visit(
      [&](const auto& kv) {
        pointers.look("kv.k.data", kv.k).look("kv.v.data", kv.v);
        look_at(pointers, kv);
      },
      a.kv);
  look_at(pointers, a.kv_scales);
  const std::vector<MaskNode>& nodes = a.mask.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    look_at(pointers, element_name("mask.nodes", static_cast<int64_t>(i)), nodes[i]);
  }
  return pointers.status();
}

Status check_pointers(const core::Backend& backend, const AppendKV& a) {
  if (backend.misplaced == nullptr) return {};
  Pointers pointers(backend, a.k_new.device);
  pointers.look("k_new.data", a.k_new)
      .look("v_new.data", a.v_new)
      .look("slot_mapping", a.slot_mapping)
      .look("k_cache.data", a.k_cache)
      .look("v_cache.data", a.v_cache);
  look_at(pointers, a.kv_scales);
  return pointers.status();
}

}  // namespace pagoda::engine
