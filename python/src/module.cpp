// The extension module pagoda._core: the calls of pagoda.h over Python arrays. pagoda/calls.py has
// their public forms.
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <new>
#include <optional>
#include <string>

#include "pagoda/pagoda.h"
#include "python/src/call.hpp"
#include "python/src/errors.hpp"
#include "python/src/torch_arguments.hpp"
#include "python/src/torch_operators.hpp"
#include "python/src/values.hpp"
#include "python/src/views.hpp"

namespace pagoda_python {
namespace {

void run_attention(const nb::tuple& arrays, const nb::tuple& mask, const nb::tuple& mask_arrays,
                   const nb::tuple& numbers, const nb::tuple& options, nb::handle stream) {
  const StreamArgument given = to_stream(stream);
  const AttentionCall call(arrays, mask, mask_arrays, numbers, given);
  const CallOptions how(options);
  const pagoda_options c_options = how.get(launch_stream(given, call.q()));
  pagoda_status status = empty_status();
  {
    const nb::gil_scoped_release release;
    pagoda_run(&call.structs().attention, &c_options, &status);
  }
  check(status);
}

// A plan, the arrays that it was made for, and its workspace.
class Plan {
 public:
  // `allocate(bytes)` returns a zeroed array of bytes on the device of q; called for GPUs only.
  Plan(const nb::tuple& arrays, const nb::tuple& mask, const nb::tuple& mask_arrays,
       const nb::tuple& numbers, const nb::tuple& options, nb::handle stream,
       const nb::callable& allocate)
      : arrays_(arrays),
        mask_arrays_(mask_arrays),
        stream_(nb::borrow(stream)),
        call_(arrays, mask, mask_arrays, numbers, to_stream(stream)) {
    const CallOptions how(options);
    const pagoda_options c_options = how.get(nullptr);
    pagoda_plan* plan = nullptr;
    pagoda_status status = empty_status();
    pagoda_plan_create(&call_.structs().attention, &c_options, &plan, &status);
    check(status);
    plan_.reset(plan);
    info_.struct_size = sizeof(info_);
    pagoda_plan_get_info(plan, &info_, &status);
    check(status);
    make_workspace(allocate, to_stream(stream));
  }

  // Arrays by position as `attention` has them; None = as planned, the stream included.
  void run(nb::handle q, nb::handle out, nb::handle lse, nb::handle stream,
           const nb::kwargs& others) {
    const StreamArgument given = to_stream(stream.is_none() ? stream_ : stream);
    Structs structs = call_.structs();
    std::array<View, kNumArrays> views;
    const auto replace = [&](size_t i, nb::handle object) {
      if (object.is_none()) return;
      views[i].assign(kArrayNames[i], object, access_of(i), given);
      structs.slot(i) = views[i].tensor();
    };
    replace(kQ, q);
    replace(kOut, out);
    replace(kLse, lse);
    for (const auto& [name, object] : others) {
      replace(index_of(nb::cast<std::string>(name)), object);
    }
    call_.check_memory(arrays_, mask_arrays_, structs);
    const View& placed = views[kQ].tensor() != nullptr ? views[kQ] : call_.q();
    void* const launch_in = launch_stream(given, placed);
    pagoda_status status = empty_status();
    {
      const nb::gil_scoped_release release;
      const std::lock_guard lock(workspace_mutex_);
      pagoda_plan_run(plan_.get(), &structs.attention, workspace_, info_.workspace_bytes, launch_in,
                      &status);
    }
    check(status);
  }

  [[nodiscard]] const pagoda_plan_info& info() const { return info_; }

 private:
  struct DestroyPlan {
    void operator()(pagoda_plan* plan) const { pagoda_plan_destroy(plan); }
  };
  struct FreeAligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }
  };
  static constexpr std::align_val_t kAlignment{64};

  void make_workspace(const nb::callable& allocate, const StreamArgument& stream) {
    const auto bytes = static_cast<size_t>(info_.workspace_bytes);
    if (bytes == 0) return;
    if (call_.q().is_on_gpu()) {
      gpu_workspace_ = allocate(bytes);
      gpu_view_.assign("workspace", gpu_workspace_, Access::kWrite, stream);
      workspace_ =
          static_cast<std::byte*>(gpu_view_.tensor()->data) + gpu_view_.tensor()->byte_offset;
      return;
    }
    host_workspace_.reset(static_cast<std::byte*>(::operator new[](bytes, kAlignment)));
    std::fill_n(host_workspace_.get(), info_.zeroed_workspace_bytes, std::byte{0});
    workspace_ = host_workspace_.get();
  }

  static size_t index_of(const std::string& name) {
    for (size_t i = 0; i < kNumArrays; ++i) {
      const std::string_view known = kArrayNames[i];
      if (known.substr(known.rfind('.') + 1) == name) return i;
    }
    raise_invalid(name, "no array of the call", "must be the name of an array argument");
  }

  nb::tuple arrays_, mask_arrays_;  // what the views of call_ point into
  nb::object stream_;               // of runs that name none
  AttentionCall call_;
  std::unique_ptr<pagoda_plan, DestroyPlan> plan_;
  pagoda_plan_info info_{};
  void* workspace_ = nullptr;
  std::mutex workspace_mutex_;  // runs on the CPU take turns
  std::unique_ptr<std::byte[], FreeAligned> host_workspace_;
  nb::object gpu_workspace_;
  View gpu_view_;
};

nb::list explain(const nb::tuple& arrays, const nb::tuple& mask, const nb::tuple& mask_arrays,
                 const nb::tuple& numbers, const nb::tuple& options) {
  const AttentionCall call(arrays, mask, mask_arrays, numbers, {});
  const CallOptions how(options);
  const pagoda_options c_options = how.get(nullptr);
  pagoda_kernel_list* list = nullptr;
  pagoda_status status = empty_status();
  pagoda_explain(&call.structs().attention, &c_options, &list, &status);
  check(status);
  const std::unique_ptr<pagoda_kernel_list, void (*)(pagoda_kernel_list*)> kept(
      list, pagoda_kernel_list_destroy);
  nb::list kernels;
  for (int64_t i = 0; i < pagoda_kernel_list_size(list); ++i) {
    pagoda_kernel_info info{};
    info.struct_size = sizeof(info);
    pagoda_kernel_list_get(list, i, &info, &status);
    check(status);
    kernels.append(nb::make_tuple(info.name, info.backend, info.is_selected != 0, info.can_run != 0,
                                  info.reason));
  }
  return kernels;
}

nb::list backends() {
  pagoda_backend_list* list = nullptr;
  pagoda_status status = empty_status();
  pagoda_backends(&list, &status);
  check(status);
  const std::unique_ptr<pagoda_backend_list, void (*)(pagoda_backend_list*)> kept(
      list, pagoda_backend_list_destroy);
  nb::list found;
  for (int64_t i = 0; i < pagoda_backend_list_size(list); ++i) {
    pagoda_backend_info info{};
    info.struct_size = sizeof(info);
    pagoda_backend_list_get(list, i, &info, &status);
    check(status);
    const char* memory = info.memory == PAGODA_CPU    ? "cpu"
                         : info.memory == PAGODA_CUDA ? "cuda"
                                                      : "hip";
    found.append(nb::make_tuple(info.name, info.is_available != 0, info.description, memory));
  }
  return found;
}

void append_kv(nb::handle k_new, nb::handle v_new, nb::handle slot_mapping, nb::handle k_cache,
               nb::handle v_cache, int32_t layout, nb::handle k_number, nb::handle v_number,
               nb::handle k_per_head, nb::handle v_per_head, nb::handle backend_name,
               nb::handle checks, nb::handle stream) {
  const StreamArgument given = to_stream(stream);
  const auto k_scale = to_value<double>("k_scale", k_number);
  const auto v_scale = to_value<double>("v_scale", v_number);
  const auto backend = to_value<std::string>("backend", backend_name);
  const auto checks_indices = to_value<bool>("checks_indices", checks);
  View views[7];
  views[0].assign("k_new", k_new, Access::kRead, given);
  views[1].assign("v_new", v_new, Access::kRead, given);
  views[2].assign("slot_mapping", slot_mapping, Access::kRead, given);
  views[3].assign("k_cache", k_cache, Access::kWrite, given);
  views[4].assign("v_cache", v_cache, Access::kWrite, given);
  views[5].assign("k_scale", k_per_head, Access::kRead, given);
  views[6].assign("v_scale", v_per_head, Access::kRead, given);
  for (const auto& bad : {bad_scale("k_scale", k_scale), bad_scale("v_scale", v_scale)}) {
    if (bad) raise_invalid(bad->name, bad->value, bad->limit);
  }
  pagoda_kv_scales scales{};
  scales.struct_size = sizeof(scales);
  scales.k = static_cast<float>(k_scale);
  scales.v = static_cast<float>(v_scale);
  scales.k_per_head = views[5].tensor();
  scales.v_per_head = views[6].tensor();
  pagoda_append_kv_args args{};
  args.struct_size = sizeof(args);
  args.k_new = views[0].tensor();
  args.v_new = views[1].tensor();
  args.slot_mapping = views[2].tensor();
  args.k_cache = views[3].tensor();
  args.v_cache = views[4].tensor();
  args.layout = layout;
  args.kv_scales = &scales;
  pagoda_options options{};
  options.struct_size = sizeof(options);
  options.backend = backend.c_str();
  options.checks_indices = checks_indices ? 1 : 0;
  options.stream = launch_stream(given, views[3]);
  pagoda_status status = empty_status();
  {
    const nb::gil_scoped_release release;
    pagoda_append_kv(&args, &options, &status);
  }
  check(status);
}

void merge_states(nb::handle partial_out, nb::handle partial_lse, nb::handle out, nb::handle lse,
                  int32_t lse_base, nb::handle row_mask, nb::handle backend_name,
                  nb::handle stream) {
  const StreamArgument given = to_stream(stream);
  const auto backend = to_value<std::string>("backend", backend_name);
  View views[5];
  views[0].assign("partial_out", partial_out, Access::kRead, given);
  views[1].assign("partial_lse", partial_lse, Access::kRead, given);
  views[2].assign("out", out, Access::kWrite, given);
  views[3].assign("lse", lse, Access::kWrite, given);
  views[4].assign("row_mask", row_mask, Access::kRead, given);
  pagoda_merge_states_args args{};
  args.struct_size = sizeof(args);
  args.partial_out = views[0].tensor();
  args.partial_lse = views[1].tensor();
  args.out = views[2].tensor();
  args.lse = views[3].tensor();
  args.lse_base = lse_base;
  args.row_mask = views[4].tensor();
  pagoda_options options{};
  options.struct_size = sizeof(options);
  options.backend = backend.c_str();
  options.stream = launch_stream(given, views[2]);
  pagoda_status status = empty_status();
  {
    const nb::gil_scoped_release release;
    pagoda_merge_states(&args, &options, &status);
  }
  check(status);
}

void release_workspaces() {
  pagoda_status status = empty_status();
  {
    const nb::gil_scoped_release release;
    pagoda_release_workspaces(&status);
  }
  check(status);
}

// (code, field, message) of the exception that Python handles, or None if it is not an operator's.
// PyTorch raises RuntimeError, too, where it does not call the operator: for a wrong type, say. The
// failure that is kept is then that of an earlier call, which nobody has asked about.
nb::object operator_failure() {
  const std::optional<OperatorFailure> failure = take_operator_failure();
  if (!failure) return nb::none();
  const nb::object error = nb::module_::import_("sys").attr("exc_info")()[1];
  const auto text = nb::cast<std::string>(nb::str(error));
  if (text.find(failure->message) == std::string::npos) return nb::none();
  return nb::make_tuple(static_cast<int>(failure->code), failure->field, failure->message);
}

nb::tuple array_names() {
  nb::list names;
  for (const char* name : kArrayNames) names.append(name);
  return nb::tuple(names);
}

}  // namespace

NB_MODULE(_core, m) {
  using namespace nb::literals;
  m.attr("ARRAYS") = array_names();
  m.attr("VERSION") = pagoda_version();
  m.def("run_attention", &run_attention, "arrays"_a, "mask"_a, "mask_arrays"_a, "numbers"_a,
        "options"_a, "stream"_a.none());
  m.def("explain", &explain, "arrays"_a, "mask"_a, "mask_arrays"_a, "numbers"_a, "options"_a);
  m.def("backends", &backends);
  m.def("append_kv", &append_kv, "k_new"_a, "v_new"_a, "slot_mapping"_a, "k_cache"_a, "v_cache"_a,
        "layout"_a, "k_scale"_a.none(), "v_scale"_a.none(), "k_per_head"_a.none(),
        "v_per_head"_a.none(), "backend"_a.none(), "checks_indices"_a.none(), "stream"_a.none());
  m.def("merge_states", &merge_states, "partial_out"_a, "partial_lse"_a, "out"_a, "lse"_a.none(),
        "lse_base"_a, "row_mask"_a.none(), "backend"_a.none(), "stream"_a.none());
  m.def("release_workspaces", &release_workspaces);
  m.def("register_torch_operators", &register_torch_operators);
  m.def("operator_failure", &operator_failure);

  nb::class_<Plan>(m, "Plan",
                   "A prepared call: kernel, tiles, KV splits, workspace. Made by pagoda.plan().")
      .def(nb::init<const nb::tuple&, const nb::tuple&, const nb::tuple&, const nb::tuple&,
                    const nb::tuple&, nb::handle, const nb::callable&>(),
           "arrays"_a, "mask"_a, "mask_arrays"_a, "numbers"_a, "options"_a, "stream"_a.none(),
           "allocate"_a)
      .def("run", &Plan::run, "q"_a.none() = nb::none(), "out"_a.none() = nb::none(),
           "lse"_a.none() = nb::none(), "stream"_a.none() = nb::none(), "others"_a,
           "Runs the planned call, on the arrays that it was planned with or on those given here,\n"
           "which must have the same shapes, strides and types: q, out, lse, and by name k, v,\n"
           "block_table, seqlens_kv and the like. In host memory the lengths must be the planned\n"
           "ones, too; in GPU memory they may change, up to the planned maxima. An array of the\n"
           "plan whose memory has been replaced, by t.data = other, is refused.\n\n"
           "stream: as in pagoda.attention(). The call allocates nothing and can be captured in a\n"
           "CUDA graph. Runs of one plan must not overlap on a GPU; on the CPU they take turns.\n"
           "Raises InvalidArgument, before anything is written, if an array differs.")
      .def_prop_ro(
          "kernel", [](const Plan& p) { return p.info().kernel; },
          "The name of the kernel that runs.")
      .def_prop_ro(
          "workspace_bytes", [](const Plan& p) { return p.info().workspace_bytes; },
          "Bytes of scratch that the plan holds.")
      .def_prop_ro(
          "num_work_items", [](const Plan& p) { return p.info().num_work_items; },
          "Work items that CPU workers or CTAs share.")
      .def_prop_ro(
          "num_split_rows", [](const Plan& p) { return p.info().num_split_rows; },
          "(query row, head) pairs whose keys are split over several work items.")
      .def_prop_ro(
          "flops", [](const Plan& p) { return p.info().flops; },
          "2 * visible (query, key) pairs * (head_dim_qk + head_dim_vo).")
      .def_prop_ro(
          "kv_bytes", [](const Plan& p) { return p.info().kv_bytes; },
          "Bytes of the visible K and V rows, each read once.");
}

}  // namespace pagoda_python
