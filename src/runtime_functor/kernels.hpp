// The kernels that can be compiled at run time, and the registration of those that were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "kernels/common/archs.hpp"
#include "runtime_functor/device/kernel_facts.hpp"

namespace pagoda::runtime_functor {

// A shape of a family.
struct Shape {
  const char* name;  // "sm90.d128.bf16"
  int32_t family;    // 80, 90, 100; 512: mha_sm100_d512
  size_t index;      // of the family's kShapes
  const kernels::Archs* archs;
  std::vector<size_t> variants;  // that are compiled for functors
  int32_t rank;                  // engine::register_functor_kernels
  const core::Kernel* row;       // fits and plans for any functor
};
[[nodiscard]] std::span<const Shape> shapes();

// One kernel in a cubin.
struct Code {
  size_t variant = 0;
  int32_t arch = 0;
  std::string cubin;
  KernelFacts facts;
};

// sizeof(AttentionParams), where a functor's value begins in the parameters.
[[nodiscard]] int32_t attention_params_bytes();

// The compute capabilities of the GPUs of this process, each once.
[[nodiscard]] std::vector<int32_t> archs_present();

// The kernels of one shape for a functor. load() loads those for GPUs that are present, and throws
// where that fails. Nothing can fail in register_shape(), which keeps them for the rest of the
// process.
class LoadedShape;
[[nodiscard]] std::shared_ptr<const LoadedShape> load(const Shape& shape,
                                                      const std::string& functor,
                                                      const std::vector<Code>& code);
void register_shape(std::shared_ptr<const LoadedShape> loaded, const std::string& functor);

}  // namespace pagoda::runtime_functor
