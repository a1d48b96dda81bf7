// From the values of the stable ABI to views and numbers.
#include "python/src/torch_arguments.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace pagoda_python {
namespace {

using torch_abi::functions;
using torch_abi::StableValue;

thread_local std::optional<OperatorFailure> last_failure;

void check(torch_abi::Error error, const char* what) {
  if (error != 0) throw std::runtime_error(std::string("PyTorch: ") + what + " failed");
}

double to_double(StableValue value) {
  double number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

pagoda_dtype to_dtype(const char* name, int32_t code) {
  for (const auto& known : functions().dtypes) {
    if (known.code == code) return {known.kind, known.bits, 1};
  }
  fail_operator_invalid(std::string(name) + ".dtype", "unknown",
                        "must be a type that Pagoda knows");
}

pagoda_device to_device(const char* name, torch_abi::TensorObject* tensor) {
  const auto& torch = functions();
  int32_t type = 0, index = 0;
  check(torch.aoti_torch_get_device_type(tensor, &type), "device type");
  if (type == torch.cpu) return {PAGODA_CPU, 0};
  if (type != torch.cuda) {
    fail_operator_invalid(std::string(name) + ".device", "of another kind", "must be CPU or CUDA");
  }
  check(torch.aoti_torch_get_device_index(tensor, &index), "device index");
  return {torch.has_rocm ? PAGODA_ROCM : PAGODA_CUDA, index};
}

}  // namespace

void fail_operator(pagoda_status_code code, const std::string& field, const std::string& message) {
  last_failure = OperatorFailure{code, field, message};
  throw std::runtime_error(message);
}

std::optional<OperatorFailure> take_operator_failure() {
  return std::exchange(last_failure, std::nullopt);
}

TorchArguments::TorchArguments(const StableValue* values) : next_(values) {
  last_failure.reset();
  owned_.reserve(8);
}

TorchArguments::~TorchArguments() {
  for (torch_abi::TensorObject* tensor : owned_) {
    functions().aoti_torch_delete_tensor_object(tensor);
  }
}

std::optional<StableValue> TorchArguments::take(StableValue value) {
  if (value == 0) return std::nullopt;
  auto* const kept = reinterpret_cast<StableValue*>(value);
  const StableValue inner = *kept;
  if (functions().torch_delete_stable_ivalue != nullptr) {
    functions().torch_delete_stable_ivalue(kept);
  } else {
    delete kept;
  }
  return inner;
}

torch_abi::TensorObject* TorchArguments::optional_tensor() {
  const std::optional<StableValue> value = optional();
  return value ? own(to_tensor(*value)) : nullptr;
}

std::vector<StableValue> TorchArguments::optional_list() {
  const std::optional<StableValue> value = optional();
  if (!value) return {};
  const auto& torch = functions();
  auto* const list = reinterpret_cast<torch_abi::ListObject*>(*value);
  size_t size = 0;
  check(torch.torch_list_size(list, &size), "list size");
  std::vector<StableValue> items(size);
  for (size_t i = 0; i < size; ++i) {
    check(torch.torch_list_get_item(list, i, &items[i]), "list item");
  }
  check(torch.torch_delete_list(list), "list");
  return items;
}

std::vector<torch_abi::TensorObject*> TorchArguments::optional_tensors() {
  std::vector<torch_abi::TensorObject*> tensors;
  for (const StableValue item : optional_list()) tensors.push_back(own(to_tensor(item)));
  return tensors;
}

std::vector<torch_abi::TensorObject*> TorchArguments::optional_tensors_or_none() {
  std::vector<torch_abi::TensorObject*> tensors;
  for (const StableValue item : optional_list()) {
    const std::optional<StableValue> value = take(item);
    tensors.push_back(value ? own(to_tensor(*value)) : nullptr);
  }
  return tensors;
}

std::vector<int64_t> TorchArguments::optional_integers() {
  std::vector<int64_t> integers;
  for (const StableValue item : optional_list()) integers.push_back(static_cast<int64_t>(item));
  return integers;
}

std::vector<double> TorchArguments::optional_numbers() {
  std::vector<double> numbers;
  for (const StableValue item : optional_list()) numbers.push_back(to_double(item));
  return numbers;
}

std::optional<double> TorchArguments::optional_number() {
  const std::optional<StableValue> value = optional();
  if (!value) return std::nullopt;
  return to_double(*value);
}

double TorchArguments::number() { return to_double(*next_++); }

std::string TorchArguments::optional_text() {
  const std::optional<StableValue> value = optional();
  if (!value) return {};
  const auto& torch = functions();
  auto* const text = reinterpret_cast<torch_abi::StringObject*>(*value);
  size_t length = 0;
  const char* data = nullptr;
  check(torch.torch_string_length(text, &length), "string length");
  check(torch.torch_string_c_str(text, &data), "string");
  std::string copy(data, length);
  check(torch.torch_delete_string(text), "string");
  return copy;
}

pagoda_tensor to_view(const char* name, torch_abi::TensorObject* tensor) {
  const auto& torch = functions();
  int64_t rank = 0;
  int32_t dtype = 0;
  int64_t *sizes = nullptr, *strides = nullptr;
  pagoda_tensor view{};
  check(torch.aoti_torch_get_dim(tensor, &rank), "rank");
  check(torch.aoti_torch_get_sizes(tensor, &sizes), "sizes");
  check(torch.aoti_torch_get_strides(tensor, &strides), "strides");
  check(torch.aoti_torch_get_dtype(tensor, &dtype), "dtype");
  check(torch.aoti_torch_get_data_ptr(tensor, &view.data), "data");
  view.device = to_device(name, tensor);
  view.ndim = static_cast<int32_t>(rank);
  view.dtype = to_dtype(name, dtype);
  view.shape = sizes;
  view.strides = strides;
  return view;
}

void* current_stream(const pagoda_tensor& tensor) {
  const auto get = functions().aoti_torch_get_current_cuda_stream;
  void* stream = nullptr;
  if (tensor.device.device_type != PAGODA_CPU && get != nullptr) {
    check(get(tensor.device.device_id, &stream), "current stream");
  }
  return stream;
}

int32_t to_int32(const char* name, int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    fail_operator_invalid(name, std::to_string(value), "must fit into 32 bits");
  }
  return static_cast<int32_t>(value);
}

}  // namespace pagoda_python
