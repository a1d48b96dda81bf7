// The softmax warps hand one pair of floats per lane of tensor memory to the correction warps: the
// factor that rescales O, and at the end of a row its pivot and sum. The pair goes through shared
// memory; a ring of one stage orders its writes and reads. A warp signals once per stage.
#pragma once

#include "arch/memory.hpp"
#include "arch/warp.hpp"
#include "kernels/common/split_rows.hpp"
#include "pipeline/mbar_pipeline.hpp"

namespace pagoda::kernels::sm100 {

// Full: 4 softmax warps arrive. Empty: 4 correction warps arrive.
using FactorPipeline = pipeline::MBarPipeline<1>;

// Softmax: `slot` is this lane's pair.
PAGODA_DEVICE void store_factors(FactorPipeline& pipeline, arch::SharedPtr<FloatPair> slot,
                                 FloatPair value) {
  // Waits until the correction warps have read the previous pair; they arrive on empty.
  pipeline.producer_acquire();
  arch::store(slot, value);
  arch::syncwarp();  // orders the stores of all lanes before the arrival of one
  pipeline.producer_mbar().arrive_if(arch::elect_one());
  pipeline.step();
}

// Correction: releases the stage after its lanes have read it.
PAGODA_DEVICE void release_factors(FactorPipeline& pipeline) {
  arch::syncwarp();  // orders the loads of all lanes before the arrival of one
  pipeline.consumer_mbar().arrive_if(arch::elect_one());
  pipeline.step();
}

// Correction: `slot` is this lane's pair.
PAGODA_DEVICE FloatPair load_factors(FactorPipeline& pipeline, arch::SharedPtr<FloatPair> slot) {
  pipeline.consumer_wait();  // waits until the softmax warps have stored the pairs and arrived
  const FloatPair value = arch::load(slot);
  release_factors(pipeline);
  return value;
}

}  // namespace pagoda::kernels::sm100
