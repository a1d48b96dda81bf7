// The kernels of torch.ops.pagoda.*; pagoda/torch.py has the schemas.
#pragma once

namespace pagoda_python {

// Registers the kernels of the operators for CPU and CUDA tensors with the PyTorch that the process
// has loaded, once. std::runtime_error: its version is older than 2.10.
void register_torch_operators();

}  // namespace pagoda_python
