// One list of the arrays of each call serves all checks.
#include "engine/placement.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "engine/check.hpp"

namespace pagoda::engine {
namespace {

std::string to_string(Device device) {
  if (device.type == DeviceType::kCpu) return name(device.type);
  return std::string(name(device.type)) + ":" + std::to_string(device.index);
}

// One array of a call. Its name is written out for an error message only.
struct Array {
  std::string_view name;  // "q"
  const void* data = nullptr;
  Device device{};
  int64_t mask_node = -1;                           // >= 0: the field is mask.nodes[mask_node].name
  int64_t index = -1;                               // >= 0: the field is name[index]
  const ConstTensor* tensor = nullptr;              // null: rows of bytes
  int64_t rows = 1, row_bytes = 0, row_stride = 0;  // stride in bytes

  [[nodiscard]] ByteView bytes() const {
    return tensor != nullptr ? bytes_of(*tensor) : bytes_of_rows(data, rows, row_bytes, row_stride);
  }
  [[nodiscard]] std::string field() const {
    if (index >= 0) return element_name(name, index);
    if (mask_node < 0) return std::string(name);
    return element_name("mask.nodes", mask_node) + "." + std::string(name);
  }
};

// What is checked of each array.
class Check {
 public:
  virtual ~Check() = default;
  virtual Status operator()(const Array& array) const = 0;
};

// Checks the present arrays of a call, until one fails.
class Arrays {
 public:
  explicit Arrays(const Check& check) : check_(check) {}

  Arrays& add(std::string_view name, const ConstTensor& tensor, int64_t mask_node = -1) {
    if (!tensor.present()) return *this;
    return check({.name = name,
                  .data = tensor.data,
                  .device = tensor.device,
                  .mask_node = mask_node,
                  .tensor = &tensor});
  }
  template <typename T>
  Arrays& add(std::string_view name, const ArrayView<T>& array, int64_t mask_node = -1) {
    if (array.empty()) return *this;
    return check({.name = name,
                  .data = array.data(),
                  .device = array.device(),
                  .mask_node = mask_node,
                  .row_bytes = array.size() * kBytes<T>});
  }
  template <typename T>
  Arrays& add(std::string_view name, const MatrixView<T>& matrix) {
    if (matrix.rows == 0 || matrix.columns == 0) return *this;
    return check({.name = name,
                  .data = matrix.data,
                  .device = matrix.device,
                  .rows = matrix.rows,
                  .row_bytes = matrix.columns * kBytes<T>,
                  .row_stride = matrix.row_stride * kBytes<T>});
  }
  Arrays& add(const KVScales& scales) {
    return add("kv_scales.k_per_head", scales.k_per_head)
        .add("kv_scales.v_per_head", scales.v_per_head);
  }
  Arrays& add(const DenseKV& kv) { return add("kv.seqlens_kv", kv.seqlens_kv); }
  Arrays& add(const RaggedKV& kv) {
    return add("kv.cu_seqlens_kv", kv.cu_seqlens_kv).add("kv.seqlens_kv", kv.seqlens_kv);
  }
  Arrays& add(const PagedKV& kv) {
    if (const auto* table = std::get_if<BlockTable>(&kv.table)) {
      return add("kv.table.pages", table->pages).add("kv.table.seqlens_kv", table->seqlens_kv);
    }
    const auto& csr = std::get<CsrPages>(kv.table);
    return add("kv.table.indptr", csr.indptr)
        .add("kv.table.indices", csr.indices)
        .add("kv.table.last_page_len", csr.last_page_len);
  }
  Arrays& add(const FunctorCall& functor) {
    // check_functor() reports a num_arrays out of range.
    for (int32_t i = 0; i < std::min(functor.num_arrays, kMaxFunctorArrays); ++i) {
      const FunctorCall::Array& array = functor.arrays[static_cast<size_t>(i)];
      if (array.bytes == 0) continue;
      check({.name = "functor.arrays",
             .data = array.data,
             .device = array.device,
             .index = i,
             .row_bytes = static_cast<int64_t>(array.bytes)});
    }
    return *this;
  }
  Arrays& add(const MaskNode& node, int64_t index) {
    add("valid_lengths", node.valid_lengths, index)
        .add("words", node.words, index)
        .add("row_offsets", node.row_offsets, index);
    const bool has_tensor =
        node.kind == MaskKind::kAdditive || node.kind == MaskKind::kRelativeBias;
    return has_tensor ? add("tensor", node.tensor, index) : *this;
  }
  [[nodiscard]] Status status() { return std::move(status_); }

 private:
  template <typename T>
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(T));

  Arrays& check(const Array& array);

  const Check& check_;
  Status status_;
};

// Once, not inlined for every array.
[[gnu::noinline]] Arrays& Arrays::check(const Array& array) {
  if (status_) status_ = check_(array);
  return *this;
}

Status check_arrays(const Attention& a, const Check& check) {
  Arrays arrays(check);
  arrays.add("q", a.q);
  std::visit([&](const auto& kv) { arrays.add("kv.k", kv.k).add("kv.v", kv.v).add(kv); }, a.kv);
  arrays.add("out", a.out)
      .add("lse", a.lse)
      .add("row_max", a.row_max)
      .add("cu_seqlens_q", a.cu_seqlens_q)
      .add("seqlens_q", a.seqlens_q)
      .add("cache_lengths", a.cache_lengths)
      .add("leftpad_kv", a.leftpad_kv)
      .add("sinks", a.sinks)
      .add("score_mod.alibi_slopes", a.score_mod.alibi_slopes)
      .add("q_scale_per_head", a.q_scale_per_head)
      .add(a.kv_scales)
      .add(a.functor);
  const std::vector<MaskNode>& nodes = a.mask.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) arrays.add(nodes[i], static_cast<int64_t>(i));
  return arrays.status();
}

Status check_arrays(const AppendKV& a, const Check& check) {
  return Arrays(check)
      .add("k_new", a.k_new)
      .add("v_new", a.v_new)
      .add("slot_mapping", a.slot_mapping)
      .add("k_cache", a.k_cache)
      .add("v_cache", a.v_cache)
      .add(a.kv_scales)
      .status();
}

Status check_arrays(const MergeStates& m, const Check& check) {
  return Arrays(check)
      .add("partial_out", m.partial_out)
      .add("partial_lse", m.partial_lse)
      .add("out", m.out)
      .add("lse", m.lse)
      .add("row_mask", m.row_mask)
      .status();
}

// All arrays are on the device of the tensor `first`.
struct DeviceCheck final : Check {
  const core::Backend& backend;
  const char* first;
  Device device;

  DeviceCheck(const core::Backend& backend_, const char* first_, Device device_)
      : backend(backend_), first(first_), device(device_) {}

  Status operator()(const Array& array) const override {
    const Device own = array.device;
    const bool is_host = backend.memory == DeviceType::kCpu;  // where an index has no meaning
    if (own.type == backend.memory && (is_host || own == device)) return {};
    const std::string limit = own.type == backend.memory
                                  ? "must be " + to_string(device) + ", the device of " + first
                                  : "back end " + std::string(backend.name) + " reads " +
                                        (is_host ? "host" : "device") + " memory (" +
                                        pagoda::name(backend.memory) + ")";
    return complain(array.field() + ".device", to_string(own), limit);
  }
};

struct Written {
  std::string_view name;
  ByteView bytes;
};

// No array that is read shares memory with one that is written.
struct ApartCheck final : Check {
  std::span<const Written> written;

  explicit ApartCheck(std::span<const Written> written_) : written(written_) {}

  Status operator()(const Array& array) const override {
    const bool is_written = std::any_of(written.begin(), written.end(),
                                        [&](const Written& w) { return w.name == array.name; });
    if (is_written) return {};
    const ByteView bytes = array.bytes();
    for (const Written& w : written) {
      if (!may_share_bytes(w.bytes, bytes)) continue;
      if (Status s = check_apart(w.name, w.bytes, array.field(), bytes); !s) return s;
    }
    return {};
  }
};

// The back end can access all arrays.
struct AddressCheck final : Check {
  const core::Backend& backend;
  Device device;

  AddressCheck(const core::Backend& backend_, Device device_)
      : backend(backend_), device(device_) {}

  Status operator()(const Array& array) const override {
    if (array.data == nullptr) return {};
    const std::string place = backend.misplaced(array.data, device);
    if (place.empty()) return {};
    return complain(array.field() + ".data", place, "must be on " + to_string(device));
  }
};

}  // namespace

Status check_placement(const core::Backend& backend, const Attention& a) {
  if (!a.q.present()) return {};  // check_queries() reports it
  return check_arrays(a, DeviceCheck(backend, "q", a.q.device));
}
Status check_placement(const core::Backend& backend, const AppendKV& a) {
  return check_arrays(a, DeviceCheck(backend, "k_new", a.k_new.device));
}
Status check_placement(const core::Backend& backend, const MergeStates& m) {
  return check_arrays(m, DeviceCheck(backend, "partial_out", m.partial_out.device));
}

Status check_outputs_apart(const Attention& a) {
  const std::array<Written, 3> written{
      {{"out", bytes_of(a.out)}, {"lse", bytes_of(a.lse)}, {"row_max", bytes_of(a.row_max)}}};
  for (size_t i = 1; i < written.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (Status s =
              check_apart(written[i].name, written[i].bytes, written[j].name, written[j].bytes);
          !s) {
        return s;
      }
    }
  }
  return check_arrays(a, ApartCheck(written));
}

Status check_pointers(const core::Backend& backend, const Attention& a) {
  if (backend.misplaced == nullptr) return {};
  return check_arrays(a, AddressCheck(backend, a.q.device));
}
Status check_pointers(const core::Backend& backend, const AppendKV& a) {
  if (backend.misplaced == nullptr) return {};
  return check_arrays(a, AddressCheck(backend, a.k_new.device));
}
Status check_pointers(const core::Backend& backend, const MergeStates& m) {
  if (backend.misplaced == nullptr) return {};
  return check_arrays(m, AddressCheck(backend, m.partial_out.device));
}

}  // namespace pagoda::engine
