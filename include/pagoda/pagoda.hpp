// Pagoda: paged flash attention for LLM inference. One token of decode over a paged bf16 cache:
//
//   pagoda::Attention a;
//   a.q = pagoda::ConstTensor::contiguous(q, pagoda::DType::kBF16, {batch, 1, 32, 128});
//   a.out = pagoda::Tensor::contiguous(o, pagoda::DType::kBF16, {batch, 1, 32, 128});
//   auto pages = [&](void* p) {
//     return pagoda::ConstTensor::contiguous(p, pagoda::DType::kBF16, {num_pages, 64, 8, 128}); };
//   a.kv = pagoda::PagedKV{.k = pages(k), .v = pages(v),
//                          .table = pagoda::BlockTable{{table, batch, 100, 100}, seqlens}};
//   a.mask = pagoda::Mask::causal();
//   if (pagoda::Status s = pagoda::run(a); !s) std::puts(s.message().c_str());
#pragma once

#include "pagoda/array_view.hpp"
#include "pagoda/attention.hpp"
#include "pagoda/backend.hpp"
#include "pagoda/device.hpp"
#include "pagoda/dtype.hpp"
#include "pagoda/executor.hpp"
#include "pagoda/functor.hpp"
#include "pagoda/host_allocator.hpp"
#include "pagoda/kv_cache.hpp"
#include "pagoda/mask.hpp"
#include "pagoda/score_mod.hpp"
#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"
#include "pagoda/version.h"
