// libFuzzer over the C ABI: structured calls on structs and arrays of exactly their size. A call
// that is valid in C++ gives the same bits in C, and one that C++ refuses is refused with the same
// code. Whatever is wrong in C only must not crash: a refused call names a field and writes
// nothing, an accepted one stays inside its memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "c_spoil.hpp"
#include "engine/validate.hpp"
#include "fuzz_attention.hpp"
#include "fuzz_calls.hpp"
#include "fuzz_outputs.hpp"
#include "fuzz_spoil.hpp"

namespace pagoda::fuzz {
namespace {

constexpr int64_t kMostRows = 10000;
constexpr double kMostFlops = 2e6;

void require(bool claim, const char* what, const char* detail = "") {
  if (claim) return;
  std::fprintf(stderr, "fuzz: %s: %s\n", what, detail);
  std::abort();
}

// Five workers on the calling thread, backwards.
pagoda_executor backwards() {
  return {.struct_size = sizeof(pagoda_executor),
          .context = nullptr,
          .parallel =
              [](void*, int32_t n, void (*body)(void*, int32_t), void* context) {
                while (n-- > 0) body(context, n);
              },
          .workers = 5,
          .reserved = 0};
}

// A status that may be too small for its message; the code is what the call returned.
struct CheckedStatus {
  explicit CheckedStatus(FuzzedDataProvider& data, Memory& memory)
      : size(struct_size(data, sizeof(pagoda_status))),
        status(lay_out(data, memory, pagoda_status{}, size)) {}

  // A code that has been returned, and whether the library could say why.
  void check(pagoda_status_code code) const {
    const bool has_room = size % 8 == 0 && size > offsetof(pagoda_status, message) && size <= 4096;
    if (!has_room) {
      require(code == PAGODA_INVALID_ARGUMENT, "a status without room was accepted");
      return;
    }
    require(status->code == code, "the status has another code");
    require(status->struct_size == size, "the size of the status has changed");
    require(code != PAGODA_INTERNAL, "internal error", status->message);
    const size_t room = std::min(size, sizeof *status) - offsetof(pagoda_status, message);
    require(std::memchr(status->message, 0, room) != nullptr, "the message has no end");
    require((code == PAGODA_OK) == (status->field[0] == 0), "a field is named where none is wrong",
            status->field);
  }

  size_t size;
  pagoda_status* status;
};

const char* text(FuzzedDataProvider& data, Memory& memory) {
  constexpr const char* kTexts[] = {"cpu",  "reference", "cuda",  "",    "?",
                                    "cpu*", "cpu.f32.*", "cpu.f", "hip", "reference"};
  const std::string picked =
      data.ConsumeBool() ? data.PickValueInArray(kTexts) : data.ConsumeRandomLengthString(20);
  const char* end = picked.c_str();
  return memory.keep(std::vector<char>(end, end + std::strlen(end) + 1)).data();
}

const pagoda_options* make_options(FuzzedDataProvider& data, Memory& memory, bool is_spoiled) {
  pagoda_executor executor = backwards();
  pagoda_options options{.struct_size = sizeof options};
  options.is_batch_invariant = static_cast<int32_t>(data.ConsumeBool());
  options.checks_indices = 1;  // page tables are spoiled, too
  size_t size = sizeof options, executor_size = sizeof executor;
  if (is_spoiled) {
    switch (data.ConsumeIntegralInRange<int>(0, 9)) {
      case 0: options.backend = text(data, memory); break;
      case 1: options.kernel = text(data, memory); break;
      case 2: options.is_batch_invariant = static_cast<int32_t>(nasty_number(data)); break;
      case 3: executor.workers = data.ConsumeIntegralInRange<int32_t>(-1, 9); break;
      case 4: executor.parallel = nullptr; break;
      case 5: executor_size = struct_size(data, executor_size); break;
      // Not one that ends before checks_indices.
      case 6: size = std::max(struct_size(data, size), size); break;
      case 7: options.schedule = static_cast<int32_t>(nasty_number(data)); break;
      case 8: options.num_kv_splits = static_cast<int32_t>(nasty_number(data)); break;
      default: break;
    }
  }
  options.executor = lay_out(data, memory, executor, executor_size);
  return lay_out(data, memory, options, size);
}

// A plan of the call, with its numbers in a struct of any size.
bool is_small(FuzzedDataProvider& data, Memory& memory, const pagoda_attention* attention,
              const pagoda_options* options) {
  pagoda_plan* plan = nullptr;
  const CheckedStatus status(data, memory);
  status.check(pagoda_plan_create(attention, options, &plan, status.status));
  if (plan == nullptr) return true;
  auto* any_size =
      lay_out(data, memory, pagoda_plan_info{}, struct_size(data, sizeof(pagoda_plan_info)));
  status.check(pagoda_plan_get_info(plan, any_size, status.status));
  pagoda_plan_info info{.struct_size = sizeof info};
  require(pagoda_plan_get_info(plan, &info, nullptr) == PAGODA_OK, "a plan has no information");
  const bool is_small = info.flops < kMostFlops;
  if (is_small && memory.is_backed) {
    std::vector<std::byte> bytes(static_cast<size_t>(info.workspace_bytes) + 64);
    auto* start = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    pagoda_status plan_status{.struct_size = sizeof plan_status};
    require(pagoda_plan_run(plan, attention, start, info.workspace_bytes, nullptr, &plan_status) ==
                PAGODA_OK,
            "a planned call was refused", plan_status.message);
    const int64_t wrong = nasty_number(data);
    if (wrong < info.workspace_bytes) {
      status.check(pagoda_plan_run(plan, attention, start, wrong, nullptr, status.status));
    }
  }
  pagoda_plan_destroy(plan);
  return is_small;
}

void explain_call(FuzzedDataProvider& data, Memory& memory, const pagoda_attention* attention,
                  const pagoda_options* options) {
  pagoda_kernel_list* list = nullptr;
  const CheckedStatus status(data, memory);
  status.check(pagoda_explain(attention, options, &list, status.status));
  auto* info =
      lay_out(data, memory, pagoda_kernel_info{}, struct_size(data, sizeof(pagoda_kernel_info)));
  const int64_t index = data.ConsumeIntegralInRange<int64_t>(-1, 12);
  const pagoda_status_code code = pagoda_kernel_list_get(list, index, info, status.status);
  status.check(code);
  require(code != PAGODA_OK || index < pagoda_kernel_list_size(list), "an index past the end");
  pagoda_kernel_list_destroy(list);
}

// Values whose C form, zero, is the default.
bool has_zero_scale(const Attention& a) {
  return a.softmax_scale == 0.0F || a.kv_scales.k == 0.0F || a.kv_scales.v == 0.0F ||
         a.q_scale == 0.0F;
}

void attention_once(FuzzedDataProvider& data, Memory& memory) {
  FuzzedCall call = make_call(data, memory);
  call.options.kernel.clear();
  const Attention& a = call.attention;
  const auto valid = engine::validate(a, call.options);
  if (valid && int64_t{valid->batch} * valid->max_seqlen_q > kMostRows) return;
  if (memory.is_backed) fill_inputs(call, memory);
  test::CCall c(a);
  const bool is_spoiled = !call.is_spoiled && data.ConsumeBool();
  if (is_spoiled) spoil(data, c);
  const pagoda_attention* attention = lay_out(data, memory, c, is_spoiled);
  const pagoda_options* options = make_options(data, memory, is_spoiled);

  explain_call(data, memory, attention, options);
  if (!memory.is_backed) {
    (void)is_small(data, memory, attention, options);
    return;
  }
  const Outputs before(a);
  if (!is_small(data, memory, attention, options)) return;
  before.restore();
  pagoda_status status{.struct_size = sizeof status};
  const pagoda_status_code code = pagoda_run(attention, options, &status);
  if (code != PAGODA_OK) {
    require(before.are_unchanged(), "a refused call wrote", status.message);
    require(status.field[0] != 0, "no field named", status.message);
    require(code != PAGODA_INTERNAL, "internal error", status.message);
  }
  if (is_spoiled || has_zero_scale(a)) return;
  const Outputs through_c(a);
  before.restore();
  Options same{.executor = &serial_executor(), .checks_indices = true};
  same.is_batch_invariant = options->is_batch_invariant == 1;
  const Status expected = run(a, same);
  require(static_cast<pagoda_status_code>(expected.code()) == code, "another code than in C++",
          status.message);
  // The number of workers decides the KV splits, and so the bits, of other calls.
  if (same.is_batch_invariant) require(through_c.are_unchanged(), "other bits than in C++");
}

// Views of backed tensors; one of them may be invalid.
const pagoda_tensor* add(Memory& memory, test::CViews& views, ConstTensor tensor) {
  memory.back(tensor);
  return views.tensor(tensor);
}

void append_once(FuzzedDataProvider& data, Memory& memory) {
  const auto number = [&](int64_t least, int64_t most) {
    return data.ConsumeIntegralInRange<int64_t>(least, most);
  };
  const int64_t tokens = number(1, 5), heads = number(1, 3), dim = 8 * number(1, 4);
  const int64_t pages = number(1, 4), page_size = number(1, 5);
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < tokens; ++i) slots.push_back(number(-2, pages * page_size));
  test::CViews views;
  pagoda_append_kv_args append{};
  append.k_new = add(memory, views, Memory::view(data, DType::kF32, {tokens, heads, dim}));
  append.v_new = add(memory, views, Memory::view(data, DType::kF32, {tokens, heads, dim}));
  append.k_cache =
      add(memory, views, Memory::view(data, DType::kF16, {pages, page_size, heads, dim}));
  append.v_cache =
      add(memory, views, Memory::view(data, DType::kF16, {pages, page_size, heads, dim}));
  append.slot_mapping = views.array(ArrayView<int64_t>(memory.keep(slots)), PAGODA_INT64);
  const pagoda_tensor** all[] = {&append.k_new, &append.v_new, &append.k_cache, &append.v_cache,
                                 &append.slot_mapping};
  switch (number(0, 4)) {
    case 0: *data.PickValueInArray(all) = nullptr; break;
    case 1: *data.PickValueInArray(all) = *data.PickValueInArray(all); break;
    case 2: append.layout = static_cast<int32_t>(number(-1, 2)); break;
    case 3: spoil(data, test::edit(*data.PickValueInArray(all))); break;
    default: break;
  }
  const CheckedStatus status(data, memory);
  const auto* args = lay_out(data, memory, append, struct_size(data, sizeof append));
  status.check(
      pagoda_append_kv(args, make_options(data, memory, data.ConsumeBool()), status.status));
}

void merge_once(FuzzedDataProvider& data, Memory& memory) {
  const auto number = [&](int64_t least, int64_t most) {
    return data.ConsumeIntegralInRange<int64_t>(least, most);
  };
  const int64_t parts = number(1, 4), rows = number(1, 4), heads = number(1, 3), dim = number(1, 9);
  test::CViews views;
  pagoda_merge_states_args merge{};
  merge.partial_out =
      add(memory, views, Memory::view(data, DType::kF32, {parts, rows, heads, dim}));
  merge.partial_lse = add(memory, views, Memory::view(data, DType::kF32, {parts, rows, heads}));
  merge.out = add(memory, views, Memory::view(data, DType::kBF16, {rows, heads, dim}));
  merge.lse = add(memory, views, Memory::view(data, DType::kF32, {rows, heads}));
  const pagoda_tensor** all[] = {&merge.partial_out, &merge.partial_lse, &merge.out, &merge.lse};
  switch (number(0, 3)) {
    case 0: *data.PickValueInArray(all) = nullptr; break;
    case 1: *data.PickValueInArray(all) = *data.PickValueInArray(all); break;
    case 2: spoil(data, test::edit(*data.PickValueInArray(all))); break;
    default: break;
  }
  const CheckedStatus status(data, memory);
  const auto* args = lay_out(data, memory, merge, struct_size(data, sizeof merge));
  status.check(
      pagoda_merge_states(args, make_options(data, memory, data.ConsumeBool()), status.status));
}

}  // namespace
}  // namespace pagoda::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pagoda::fuzz;  // NOLINT(google-build-using-namespace): the calls
  fuzz_call(bytes, size, append_once, merge_once, attention_once);
  return 0;
}
