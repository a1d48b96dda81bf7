// The functions of nvrtc.h are declared here: the toolkit's headers are not needed.
#include "runtime_functor/nvrtc.hpp"

#include <cstdlib>
#include <dlfcn.h>

namespace pagoda::runtime_functor {
namespace {

using Program = void*;  // nvrtcProgram
constexpr int kSuccess = 0, kInvalidOption = 5, kCompilation = 6;

std::vector<std::string> names_to_try(const std::string& name) {
  if (!name.empty()) return {name};
  std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so.12"};
  std::vector<std::string> folders;
  if (const char* cuda = std::getenv("CUDA_PATH"); cuda != nullptr) folders.emplace_back(cuda);
  folders.emplace_back("/usr/local/cuda");
  for (const std::string& folder : folders) {
    for (const char* version : {"13", "12"}) {
      names.push_back(folder + "/lib64/libnvrtc.so." + version);
    }
  }
  return names;
}

template <class Text>
std::vector<const char*> pointers(const std::vector<Text>& texts) {
  std::vector<const char*> all;
  for (const Text& text : texts) all.push_back(text.c_str());
  return all;
}

}  // namespace

struct Nvrtc::Functions {
  const char* (*error_string)(int);
  int (*create)(Program*, const char* text, const char* name, int num_headers,
                const char* const* headers, const char* const* names);
  int (*compile)(Program, int num_options, const char* const* options);
  int (*destroy)(Program*);
  int (*log_bytes)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_bytes)(Program, size_t*);
  int (*cubin)(Program, char*);
};

Result<Nvrtc> Nvrtc::load(const std::string& name) {
  std::string tried;
  for (const std::string& each : names_to_try(name)) {
    void* library = dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += std::string("\n  ") + dlerror();
      continue;
    }
    Functions f{};
    bool has_all = true;
    const auto find = [&]<class Function>(Function*& function, const char* symbol) {
      function = reinterpret_cast<Function*>(dlsym(library, symbol));
      has_all = has_all && function != nullptr;
    };
    find(f.error_string, "nvrtcGetErrorString");
    find(f.create, "nvrtcCreateProgram");
    find(f.compile, "nvrtcCompileProgram");
    find(f.destroy, "nvrtcDestroyProgram");
    find(f.log_bytes, "nvrtcGetProgramLogSize");
    find(f.log, "nvrtcGetProgramLog");
    find(f.cubin_bytes, "nvrtcGetCUBINSize");
    find(f.cubin, "nvrtcGetCUBIN");
    if (has_all) return Nvrtc(std::make_shared<const Functions>(f));
    tried += "\n  " + each + ": it lacks functions of NVRTC 12.0";
    dlclose(library);
  }
  return Status(StatusCode::kNotFound, "nvrtc",
                "a functor is compiled at run time by NVRTC, a library of the CUDA toolkit "
                "(cuda-nvrtc; PyPI: nvidia-cuda-nvrtc), which was not found. Tried:" +
                    tried);
}

Result<Compiled> Nvrtc::compile(const std::string& program, std::span<const Header> headers,
                                const std::vector<std::string>& options) const {
  const Functions& f = *functions_;
  std::vector<const char*> names, texts;
  for (const Header& header : headers) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  Program made = nullptr;
  if (const int error = f.create(&made, program.c_str(), "program.cu",
                                 static_cast<int>(names.size()), texts.data(), names.data());
      error != kSuccess) {
    return Status(StatusCode::kInternal, "", std::string("NVRTC: ") + f.error_string(error));
  }
  const auto destroy = [&f](Program* of) { f.destroy(of); };
  const std::unique_ptr<Program, decltype(destroy)> owner(&made, destroy);
  const std::vector<const char*> texts_of_options = pointers(options);
  const int error =
      f.compile(made, static_cast<int>(texts_of_options.size()), texts_of_options.data());
  const auto read = [made](auto bytes_of, auto read_of) {
    size_t bytes = 0;
    std::string text;
    if (bytes_of(made, &bytes) != kSuccess || bytes == 0) return text;
    text.resize(bytes);
    if (read_of(made, text.data()) != kSuccess) text.clear();
    return text;
  };
  std::string log = read(f.log_bytes, f.log);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (error == kCompilation) {
    return Status(StatusCode::kInvalidArgument, "source", "NVRTC does not compile source:\n" + log);
  }
  if (error != kSuccess) {
    std::string message = std::string(f.error_string(error)) + "\n" + log + "\nThe options were:";
    for (const std::string& option : options) message += " " + option;
    return Status(error == kInvalidOption ? StatusCode::kUnsupported : StatusCode::kInternal, "",
                  message);
  }
  return Compiled{read(f.cubin_bytes, f.cubin), log};
}

}  // namespace pagoda::runtime_functor
