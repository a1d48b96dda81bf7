// The public call: checks its argument, compiles, compares what was compiled with what the program
// has, and registers it.
#include <algorithm>
#include <memory>
#include <mutex>

#include "core/functor.hpp"
#include "engine/check.hpp"
#include "engine/functors.hpp"
#include "engine/guard.hpp"
#include "pagoda/runtime_functor.hpp"
#include "runtime_functor/compile.hpp"
#include "runtime_functor/kernels.hpp"

namespace pagoda {
namespace runtime_functor {
namespace {

using engine::complain;

constexpr const char* kBackend = "cuda";
constexpr int32_t kLeastArch = 80;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_identifier(const std::string& text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

// What a type's name consists of: it becomes a macro.
bool is_type(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view(":<>, ").find(c) != std::string::npos;
  });
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

const Shape* find_shape(const std::string& name) {
  const auto found = std::find_if(shapes().begin(), shapes().end(),
                                  [&](const Shape& shape) { return name == shape.name; });
  return found == shapes().end() ? nullptr : &*found;
}

std::string shape_names() {
  std::string names;
  for (const Shape& shape : shapes()) names += std::string(names.empty() ? "" : ", ") + shape.name;
  return names;
}

// Whether kernels of the functor are registered under this name.
bool is_registered(const core::RegisteredFunctor* functor, const std::string& kernel) {
  if (functor == nullptr) return false;
  const std::vector<const core::Kernel*> rows = engine::functor_kernels(kBackend, functor);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const core::Kernel* row) { return kernel == row->name; });
}

Status check_texts(const FunctorSource& functor) {
  if (!is_identifier(functor.name)) {
    return complain("name", quoted(functor.name), "must be an identifier");
  }
  if (!is_type(functor.type)) {
    return complain("type", quoted(functor.type), "must be the name of a type in source");
  }
  if (functor.source.empty()) {
    return complain("source", quoted(""), "must define the functor's type");
  }
  const core::RegisteredFunctor* type = engine::find_functor(functor.name);
  if (type != nullptr && engine::is_ambiguous(*type)) {
    return complain("name", quoted(functor.name), "two functors are registered by this name");
  }
  return {};
}

Status check_shapes(const FunctorSource& functor) {
  if (functor.shapes.empty()) return complain("shapes.size()", int64_t{0}, "must be at least 1");
  const core::RegisteredFunctor* type = engine::find_functor(functor.name);
  for (size_t i = 0; i < functor.shapes.size(); ++i) {
    const std::string& name = functor.shapes[i];
    const std::string field = "shapes[" + std::to_string(i) + "]";
    if (find_shape(name) == nullptr) {
      return complain(field, quoted(name), "must be one of " + shape_names());
    }
    if (std::count(functor.shapes.begin(), functor.shapes.end(), name) > 1) {
      return complain(field, quoted(name), "must be named once");
    }
    if (is_registered(type, name + "+" + functor.name)) {
      return complain(field, quoted(name),
                      "is registered for functor " + quoted(functor.name) + " already");
    }
  }
  return {};
}

Result<std::vector<int32_t>> archs_of(const FunctorSource& functor) {
  if (functor.archs.empty()) {
    std::vector<int32_t> present = archs_present();
    if (!present.empty()) return present;
    return complain("archs.size()", int64_t{0},
                    "must be at least 1 where there is no GPU, whose architecture would be taken");
  }
  for (size_t i = 0; i < functor.archs.size(); ++i) {
    const std::string field = "archs[" + std::to_string(i) + "]";
    if (functor.archs[i] < kLeastArch) {
      return complain(field, int64_t{functor.archs[i]},
                      "must be a compute capability of at least 80, which is 8.0");
    }
    if (std::count(functor.archs.begin(), functor.archs.end(), functor.archs[i]) > 1) {
      return complain(field, int64_t{functor.archs[i]}, "must be named once");
    }
  }
  return functor.archs;
}

std::string text_of(const std::vector<int32_t>& archs) {
  std::string text;
  for (const int32_t arch : archs) text += (text.empty() ? "" : ", ") + std::to_string(arch);
  return text;
}

Result<std::vector<Request>> make_requests(const FunctorSource& functor,
                                           const std::vector<int32_t>& archs) {
  std::vector<Request> requests;
  for (size_t i = 0; i < functor.shapes.size(); ++i) {
    const Shape& shape = *find_shape(functor.shapes[i]);
    const size_t before = requests.size();
    for (const int32_t arch : archs) {
      if (!shape.archs->run_on(arch)) continue;
      for (const size_t variant : shape.variants) requests.push_back({&shape, variant, arch});
    }
    if (requests.size() == before) {
      return complain("shapes[" + std::to_string(i) + "]", quoted(shape.name),
                      "must run on one of the architectures " + text_of(archs));
    }
  }
  return requests;
}

// Host code of the same functor, if the program has it, must agree with what was compiled.
Status check_facts(const FunctorSource& functor, const std::vector<Code>& code) {
  const KernelFacts& facts = code.front().facts;
  for (const Code& each : code) {
    const KernelFacts& of = each.facts;
    const bool is_same = of.functor_bytes == facts.functor_bytes && of.has_keep == facts.has_keep &&
                         of.has_score == facts.has_score && of.is_causal == facts.is_causal;
    if (!is_same || of.functor_offset != attention_params_bytes() || of.functor_bytes <= 0 ||
        of.functor_bytes > kMaxFunctorBytes) {
      return {StatusCode::kInternal, "",
              "the parameters of a compiled functor have another layout"};
    }
  }
  const core::RegisteredFunctor* type = engine::find_functor(functor.name);
  if (type == nullptr) return {};
  if (type->value_bytes != facts.functor_bytes) {
    return complain("type", quoted(functor.type),
                    "has " + std::to_string(facts.functor_bytes) + " bytes; functor " +
                        quoted(functor.name) + ", which is registered already, has " +
                        std::to_string(type->value_bytes));
  }
  const bool agrees =
      type->is_causal == (facts.is_causal != 0) &&
      (!type->has_host_code() || ((type->keep != nullptr) == (facts.has_keep != 0) &&
                                  (type->score != nullptr) == (facts.has_score != 0)));
  if (agrees) return {};
  return complain("type", quoted(functor.type),
                  "must have the members keep, score and kIsCausal of functor " +
                      quoted(functor.name) + ", which is registered already");
}

Result<CompiledFunctor> compile_and_register(const FunctorSource& functor) {
  if (Status s = check_texts(functor); !s) return s;
  if (Status s = check_shapes(functor); !s) return s;
  const Result<std::vector<int32_t>> archs = archs_of(functor);
  if (!archs) return archs.status();
  const Result<std::vector<Request>> requests = make_requests(functor, *archs);
  if (!requests) return requests.status();
  Result<Outcome> outcome = compile(functor, *requests);
  if (!outcome) return outcome.status();
  if (Status s = check_facts(functor, outcome->code); !s) return s;

  const KernelFacts facts = outcome->code.front().facts;
  CompiledFunctor compiled;
  compiled.value_bytes = facts.functor_bytes;
  compiled.num_compiled = outcome->num_compiled;
  compiled.num_cached = static_cast<int32_t>(requests->size()) - outcome->num_compiled;
  compiled.log = outcome->log;
  std::vector<std::shared_ptr<const LoadedShape>> loaded;
  for (const std::string& name : functor.shapes) {
    std::vector<Code> code;
    for (size_t i = 0; i < requests->size(); ++i) {
      if (name == (*requests)[i].shape->name) code.push_back(std::move(outcome->code[i]));
    }
    loaded.push_back(load(*find_shape(name), functor.name, code));
    compiled.names.push_back(name + "+" + functor.name);
  }
  if (engine::find_functor(functor.name) == nullptr) {
    engine::register_functor({.name = functor.name,
                              .value_bytes = compiled.value_bytes,
                              .is_causal = facts.is_causal != 0});
  }
  for (std::shared_ptr<const LoadedShape>& each : loaded) {
    register_shape(std::move(each), functor.name);
  }
  return compiled;
}

}  // namespace
}  // namespace runtime_functor

Result<CompiledFunctor> compile_functor(const FunctorSource& functor) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return engine::guarded([&] { return runtime_functor::compile_and_register(functor); });
}

}  // namespace pagoda
