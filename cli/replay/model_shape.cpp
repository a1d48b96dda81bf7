// The model table. Numbers are those of the models' published configurations (config.json).
#include "cli/replay/model_shape.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>

namespace pagoda::replay {

namespace {

const std::array kModels{
    ModelShape{.name = "llama-3.2-1b",
               .num_q_heads = 32,
               .num_kv_heads = 8,
               .head_dim = 64,
               .num_layers = 16},
    ModelShape{.name = "llama-3.1-8b",
               .num_q_heads = 32,
               .num_kv_heads = 8,
               .head_dim = 128,
               .num_layers = 32},
    ModelShape{.name = "qwen3-32b",
               .num_q_heads = 64,
               .num_kv_heads = 8,
               .head_dim = 128,
               .num_layers = 64},
    ModelShape{.name = "gpt-oss-20b",
               .num_q_heads = 64,
               .num_kv_heads = 8,
               .head_dim = 64,
               .num_layers = 24,
               .window = 128,
               .has_sinks = true},
    ModelShape{.name = "gemma-2-9b",
               .num_q_heads = 16,
               .num_kv_heads = 8,
               .head_dim = 256,
               .num_layers = 42,
               .window = 4096,
               .softcap = 50.0F,
               .softmax_scale = 1.0F / 16.0F},  // query_pre_attn_scalar = 256
};

}  // namespace

float ModelShape::scale() const {
  return softmax_scale != 0 ? softmax_scale : 1.0F / std::sqrt(static_cast<float>(head_dim));
}

std::span<const ModelShape> known_models() { return kModels; }

Result<ModelShape> find_model(std::string_view name) {
  std::string names;
  for (const ModelShape& model : kModels) {
    if (model.name == name) return model;
    names += (names.empty() ? "" : ", ") + model.name;
  }
  return Status(StatusCode::kNotFound, "model",
                fmt::format("model is '{}'; known models: {}", name, names));
}

Result<ModelShape> tensor_parallel_share(ModelShape model, int32_t ranks) {
  if (ranks < 1 || model.num_q_heads % ranks != 0) {
    return Status::invalid(
        "tp", std::to_string(ranks),
        fmt::format("it must divide the {} query heads of {}", model.num_q_heads, model.name));
  }
  if (model.num_kv_heads % ranks != 0 && ranks % model.num_kv_heads != 0) {
    return Status::invalid("tp", std::to_string(ranks),
                           fmt::format("it must divide the {} key heads of {}, or be a multiple",
                                       model.num_kv_heads, model.name));
  }
  model.num_q_heads /= ranks;
  model.num_kv_heads = model.num_kv_heads < ranks ? 1 : model.num_kv_heads / ranks;
  if (ranks > 1) model.name += fmt::format(" (1 of {} tensor-parallel ranks)", ranks);
  return model;
}

Status validate(const ModelShape& model) {
  const auto check = [](const char* field, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return Status{};
    return Status::invalid(field, std::to_string(value), fmt::format("allowed: {}..{}", low, high));
  };
  if (Status s = check("q-heads", model.num_q_heads, 1, 1024); !s) return s;
  if (Status s = check("kv-heads", model.num_kv_heads, 1, 1024); !s) return s;
  if (Status s = check("head-dim", model.head_dim, 8, 576); !s) return s;
  if (Status s = check("model-layers", model.num_layers, 1, 1024); !s) return s;
  if (Status s = check("window", model.window, 0, 1 << 30); !s) return s;
  if (model.head_dim % 8 != 0) {
    return Status::invalid("head-dim", std::to_string(model.head_dim), "must be a multiple of 8");
  }
  if (model.num_q_heads % model.num_kv_heads != 0) {
    return Status::invalid("q-heads", std::to_string(model.num_q_heads),
                           fmt::format("must be a multiple of kv-heads {}", model.num_kv_heads));
  }
  if (!(model.softcap >= 0) || !std::isfinite(model.softcap)) {
    return Status::invalid("softcap", fmt::format("{}", model.softcap), "must be 0 (off) or more");
  }
  if (!(model.softmax_scale >= 0) || !std::isfinite(model.softmax_scale)) {
    return Status::invalid("softmax-scale", fmt::format("{}", model.softmax_scale),
                           "must be positive");
  }
  return {};
}

}  // namespace pagoda::replay
