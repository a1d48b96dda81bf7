// TorchArguments: the arguments of an operator of PyTorch, read in the order of its schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pagoda/pagoda.h"
#include "python/src/torch_abi.hpp"

namespace pagoda_python {

// Ends an operator with std::runtime_error, of which PyTorch makes a RuntimeError, and keeps the
// status for take_operator_failure(): pagoda.torch makes Pagoda's exception of it.
[[noreturn]] void fail_operator(pagoda_status_code code, const std::string& field,
                                const std::string& message);
[[noreturn]] inline void fail_operator_invalid(const std::string& field, const std::string& value,
                                               const std::string& limit) {
  fail_operator(PAGODA_INVALID_ARGUMENT, field, field + " is " + value + "; " + limit);
}

// The status of the operator that failed last in this thread; taken by the first reader.
struct OperatorFailure {
  pagoda_status_code code;
  std::string field, message;
};
std::optional<OperatorFailure> take_operator_failure();

// Owns what the arguments refer to. Every argument must be read.
class TorchArguments {
 public:
  // Begins a call: forgets the failure of an earlier one in this thread.
  explicit TorchArguments(const torch_abi::StableValue* values);
  TorchArguments(const TorchArguments&) = delete;
  TorchArguments& operator=(const TorchArguments&) = delete;
  ~TorchArguments();

  torch_abi::TensorObject* tensor() { return own(to_tensor(*next_++)); }  // Tensor
  torch_abi::TensorObject* optional_tensor();                             // Tensor?
  std::vector<torch_abi::TensorObject*> optional_tensors();               // Tensor[]?
  std::vector<torch_abi::TensorObject*> optional_tensors_or_none();       // Tensor?[]?
  std::vector<int64_t> optional_integers();                               // SymInt[]?
  std::vector<double> optional_numbers();                                 // float[]?
  std::optional<double> optional_number();                                // float?
  std::string optional_text();                                            // str?
  int64_t integer() { return static_cast<int64_t>(*next_++); }            // SymInt
  double number();                                                        // float
  bool flag() { return (*next_++ & 1) != 0; }                             // bool

 private:
  static torch_abi::TensorObject* to_tensor(torch_abi::StableValue value) {
    return reinterpret_cast<torch_abi::TensorObject*>(value);
  }
  torch_abi::TensorObject* own(torch_abi::TensorObject* tensor) {
    owned_.push_back(tensor);
    return tensor;
  }
  std::optional<torch_abi::StableValue> optional() { return take(*next_++); }
  static std::optional<torch_abi::StableValue> take(torch_abi::StableValue value);
  std::vector<torch_abi::StableValue> optional_list();

  const torch_abi::StableValue* next_;
  std::vector<torch_abi::TensorObject*> owned_;
};

// `tensor` as a view, which lives as long as the tensor. `name` is the argument's, for errors.
pagoda_tensor to_view(const char* name, torch_abi::TensorObject* tensor);

// PyTorch's current stream of the tensor's device, null for host memory.
void* current_stream(const pagoda_tensor& tensor);

// An integer of a schema, which has 64 bits.
int32_t to_int32(const char* name, int64_t value);

}  // namespace pagoda_python
