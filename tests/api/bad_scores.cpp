// Bad scales, sinks, score mods and options.
#include <cmath>

#include "bad_call.hpp"

namespace pagoda::test {

std::span<const BadCall> bad_scores() {
  static constexpr BadCall kRows[] = {
      {"softmax_scale_nan", Base::kDense, [](ValidCall& c) { c.a.softmax_scale = NAN; },
       "softmax_scale", "finite and above 0"},
      {"softmax_scale_infinite", Base::kDense, [](ValidCall& c) { c.a.softmax_scale = INFINITY; },
       "softmax_scale", "is inf"},
      {"softmax_scale_0", Base::kRagged, [](ValidCall& c) { c.a.softmax_scale = 0; },
       "softmax_scale", "is 0"},
      {"softmax_scale_negative", Base::kRagged, [](ValidCall& c) { c.a.softmax_scale = -0.125F; },
       "softmax_scale", "is -0.125"},
      {"softcap_negative", Base::kDense, [](ValidCall& c) { c.a.score_mod.softcap = -50; },
       "score_mod.softcap", "is -50"},
      {"softcap_nan", Base::kDense, [](ValidCall& c) { c.a.score_mod.softcap = NAN; },
       "score_mod.softcap", "must be 0 (off)"},
      {"alibi_slopes_per_kv_head", Base::kDense,
       [](ValidCall& c) {
         c.floats = {0.5F, 0.25F};
         c.a.score_mod.alibi_slopes = c.floats;
       },
       "score_mod.alibi_slopes.size()", "must be 0 or num_q_heads = 4"},
      {"alibi_slope_infinite", Base::kDense,
       [](ValidCall& c) {
         c.floats = {0.5F, 0.25F, -INFINITY, 1};
         c.a.score_mod.alibi_slopes = c.floats;
       },
       "score_mod.alibi_slopes[2]", "must be finite"},
      {"sinks_too_many", Base::kDense,
       [](ValidCall& c) {
         c.floats = {0, 0, 0, 0, 0};
         c.a.sinks = c.floats;
       },
       "sinks.size()", "must be 0 or num_q_heads = 4"},
      {"sink_nan", Base::kRagged,
       [](ValidCall& c) {
         c.floats = {0, NAN, 0, 0};
         c.a.sinks = c.floats;
       },
       "sinks[1]", "must be finite"},
  };
  return kRows;
}

std::span<const BadCall> bad_options() {
  static constexpr BadCall kRows[] = {
      {"backend_unknown", Base::kDense, [](ValidCall& c) { c.options.backend = "abacus"; },
       "backend", "\"abacus\"; this library has ", StatusCode::kNotFound},
      {"kernel_unknown", Base::kDense, [](ValidCall& c) { c.options.kernel = "reference.fast"; },
       "kernel", "back end reference has reference", StatusCode::kNotFound},
      {"kernel_of_another_backend", Base::kDense,
       [](ValidCall& c) { c.options.kernel = "cpu.f32.scalar"; }, "kernel",
       "back end reference has reference", StatusCode::kNotFound},
      {"schedule_unknown", Base::kDense,
       [](ValidCall& c) { c.options.schedule = static_cast<Schedule>(9); }, "schedule",
       "must be one of Schedule's values"},
      {"kv_splits_negative", Base::kDense, [](ValidCall& c) { c.options.num_kv_splits = -1; },
       "num_kv_splits", "must be in [0, 128]"},
      {"kv_splits_of_stream_k", Base::kDense,
       [](ValidCall& c) {
         c.options.schedule = Schedule::kStreamK;
         c.options.num_kv_splits = 2;
       },
       "num_kv_splits", "must be 0 or 1 with schedule stream-k"},
  };
  return kRows;
}

}  // namespace pagoda::test
