// Runs the table of primitive tests on the GPU of this machine. A faulting kernel destroys the CUDA
// context and a deadlock never returns, so a child process runs the tests: when it exits or is
// silent for too long, its test has failed and a new child continues after it. Prints a table,
// writes a JSON log, and exits with 1 if a test fails, 2 if something else goes wrong, 77 without a
// GPU.
//   runner [--json FILE] [--filter TEXT] [--list]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <fstream>
#include <map>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "../groups.hpp"
#include "launch.hpp"

namespace pagoda::primitives {
namespace {

struct Device {
  std::string name;
  int arch = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int driver = 0, runtime = 0;  // 13000 for 13.0
};

enum Status { kPassed, kFailed, kSkipped };

struct Outcome {
  const Case* test = nullptr;
  Status status = kSkipped;
  int64_t first_difference = -1;
  std::string message;
};

// Memory of the device, freed with it.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const Bytes& bytes) : size_(bytes.size()) {
    check(cudaMalloc(&data_, std::max<size_t>(size_, 16)), "cudaMalloc");
    check(cudaMemcpy(data_, bytes.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy to device");
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  Bytes read() const {
    Bytes bytes(size_);
    check(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDeviceToHost), "cudaMemcpy to host");
    return bytes;
  }

 private:
  void* data_ = nullptr;
  size_t size_;
};

constexpr int kExitNoDevice = 77;  // what CTest takes for "skipped"

bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

Device describe_device() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  Device device{.name = properties.name,
                .arch = properties.major * 10 + properties.minor,
                .multiprocessors = properties.multiProcessorCount};
  check(cudaDriverGetVersion(&device.driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&device.runtime), "cudaRuntimeGetVersion");
  return device;
}

// "expected 1a 2b .., got ..": 8 bytes from the first wrong one.
std::string show_difference(const Case& test, const Bytes& actual, int64_t at) {
  const auto show = [at](const Bytes& bytes) {
    std::string text;
    const auto first = static_cast<size_t>(at);
    for (size_t i = first; i < std::min(first + 8, bytes.size()); ++i) {
      char digits[4];
      std::snprintf(digits, sizeof digits, " %02x", std::to_integer<unsigned>(bytes[i]));
      text += digits;
    }
    return text;
  };
  return "byte " + std::to_string(at) + " of " + std::to_string(actual.size()) + ": expected" +
         show(test.expected) + ", got" + show(actual);
}

Outcome run_case(const Case& test, int arch) {
  Outcome outcome{.test = &test};
  if (arch < test.min_arch || arch > test.max_arch) {
    outcome.message = "not an instruction of sm_" + std::to_string(arch);
    return outcome;
  }
  outcome.status = kFailed;
  try {
    const DeviceBuffer in(test.input), out(test.output);
    test.run({in.data(), out.data(), test.input.size(), test.output.size()});
    check(cudaDeviceSynchronize(), "kernel");
    const Bytes actual = out.read();
    outcome.first_difference = first_difference(test, actual);
    if (outcome.first_difference < 0) {
      outcome.status = kPassed;
    } else {
      outcome.message = show_difference(test, actual, outcome.first_difference);
    }
  } catch (const std::exception& error) {
    outcome.message = error.what();
  }
  return outcome;
}

// --- the child process: one line of text per event ---------------------------------------------

constexpr int kSecondsPerTest = 30;  // then it hangs

// "device ARCH MULTIPROCESSORS DRIVER RUNTIME NAME", then for each test "begin INDEX" and
// "end INDEX STATUS FIRST_DIFFERENCE MESSAGE".
[[noreturn]] void run_child(const Cases& cases, size_t first, const std::string& filter, int pipe) {
  FILE* const to_parent = fdopen(pipe, "w");
  setvbuf(to_parent, nullptr, _IOLBF, 4096);
  if (!has_device()) _exit(kExitNoDevice);
  try {
    const Device device = describe_device();
    std::fprintf(to_parent, "device %d %d %d %d %s\n", device.arch, device.multiprocessors,
                 device.driver, device.runtime, device.name.c_str());
    for (size_t i = first; i < cases.size(); ++i) {
      if (cases[i].name.find(filter) == std::string::npos) continue;
      std::fprintf(to_parent, "begin %zu\n", i);
      const Outcome outcome = run_case(cases[i], device.arch);
      std::fprintf(to_parent, "end %zu %d %lld %s\n", i, static_cast<int>(outcome.status),
                   static_cast<long long>(outcome.first_difference), outcome.message.c_str());
      if (cudaDeviceSynchronize() != cudaSuccess) break;  // the context is lost
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "runner: %s\n", error.what());
    _exit(2);
  }
  std::fclose(to_parent);
  _exit(0);
}

struct Run {
  Device device;
  std::vector<Outcome> outcomes;
  size_t next = 0;       // the first case that no child has begun
  bool is_open = false;  // a case has begun and not ended
  int exit_status = 0;   // of the last child
};

void take_line(const Cases& cases, const std::string& line, Run& run) {
  std::istringstream words(line);
  std::string event;
  words >> event;
  if (event == "device") {
    words >> run.device.arch >> run.device.multiprocessors >> run.device.driver >>
        run.device.runtime >> std::ws;
    std::getline(words, run.device.name);
    return;
  }
  size_t index = 0;
  words >> index;
  if (event == "begin") {
    run.outcomes.push_back({.test = &cases[index], .status = kFailed, .message = "it hangs"});
    run.next = index + 1;
  } else {
    int status = kFailed;
    Outcome& outcome = run.outcomes.back();
    words >> status >> outcome.first_difference >> std::ws;
    outcome.status = static_cast<Status>(status);
    outcome.message.clear();
    std::getline(words, outcome.message);
  }
  run.is_open = event == "begin";
}

// Reads the child's lines until it ends or is silent for too long.
void follow_child(const Cases& cases, pid_t child, int pipe, Run& run) {
  std::string text;
  char buffer[4096];
  while (true) {
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kSecondsPerTest * 1000) == 0) {
      kill(child, SIGKILL);
      break;
    }
    const ssize_t count = read(pipe, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      take_line(cases, text.substr(0, end), run);
      text.erase(0, end + 1);
    }
  }
  close(pipe);
  int status = 0;
  waitpid(child, &status, 0);
  run.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 2;
  if (run.is_open && run.exit_status != 0 && WIFEXITED(status)) {
    run.outcomes.back().message = "the process ended";
  }
}

Run run_all(const Cases& cases, const std::string& filter) {
  Run run;
  while (true) {
    const size_t first = run.next;
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
      close(ends[0]);
      run_child(cases, first, filter, ends[1]);
    }
    close(ends[1]);
    follow_child(cases, child, ends[0], run);
    if (run.exit_status == kExitNoDevice || run.next == first) return run;  // none began
    const bool is_done = run.exit_status == 0 && run.outcomes.back().status != kFailed;
    if (is_done) return run;
  }
}

// --- output -----------------------------------------------------------------------------------

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string compiler() {
  return std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__) + "." +
         std::to_string(__CUDACC_VER_BUILD__);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + '"';
}

void write_json(const std::string& path, const Device& device,
                const std::vector<Outcome>& outcomes) {
  static const char* const kStatus[] = {"pass", "fail", "skip"};
  std::ofstream file(path);
  file << "{\n  \"device\": " << quoted(device.name) << ",\n  \"arch\": \"sm_" << device.arch
       << "\",\n  \"multiprocessors\": " << device.multiprocessors
       << ",\n  \"driver\": " << quoted(version(device.driver))
       << ",\n  \"runtime\": " << quoted(version(device.runtime))
       << ",\n  \"nvcc\": " << quoted(compiler()) << ",\n";
  for (int status = 0; status < 3; ++status) {
    file << "  \"" << kStatus[status] << "\": "
         << std::count_if(outcomes.begin(), outcomes.end(),
                          [=](const Outcome& o) { return o.status == status; })
         << ",\n";
  }
  file << "  \"tests\": [\n";
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& o = outcomes[i];
    file << "    {\"name\": " << quoted(o.test->name) << ", \"status\": \"" << kStatus[o.status]
         << "\", \"output_bytes\": " << o.test->expected.size();
    if (o.first_difference >= 0) file << ", \"first_differing_byte\": " << o.first_difference;
    if (!o.message.empty()) file << ", \"message\": " << quoted(o.message);
    file << "}" << (i + 1 < outcomes.size() ? "," : "") << "\n";
  }
  file << "  ]\n}\n";
  if (!file.flush()) throw std::runtime_error("can't write " + path);
}

// One line per primitive; every failure on a line of its own.
void print(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> order;
  std::map<std::string, std::array<int, 3>> counts;
  for (const Outcome& o : outcomes) {
    const std::string primitive = o.test->name.substr(0, o.test->name.find('/'));
    if (!counts.contains(primitive)) order.push_back(primitive);
    ++counts[primitive][static_cast<size_t>(o.status)];
  }
  std::printf("%-44s %6s %6s %6s\n", "primitive", "pass", "fail", "skip");
  for (const std::string& primitive : order) {
    const auto& [pass, fail, skip] = counts[primitive];
    std::printf("%-44s %6d %6d %6d\n", primitive.c_str(), pass, fail, skip);
  }
  for (const Outcome& o : outcomes) {
    if (o.status == kFailed) {
      std::printf("FAIL %s\n     %s\n", o.test->name.c_str(), o.message.c_str());
    }
  }
}

int run(int argc, char** argv) {
  std::string json, filter;
  bool is_list = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else if (option == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (option == "--list") {
      is_list = true;
    } else {
      throw std::runtime_error("usage: " + std::string(argv[0]) +
                               " [--json FILE] [--filter TEXT] [--list]");
    }
  }
  const Cases cases = all_cases();
  if (is_list) {
    for (const Case& test : cases) std::printf("%s\n", test.name.c_str());
    return 0;
  }
  const Run run = run_all(cases, filter);
  if (run.exit_status == kExitNoDevice) {
    std::fprintf(stderr, "runner: no CUDA device on this machine; none of %zu tests ran\n",
                 cases.size());
    return kExitNoDevice;
  }
  const Device& device = run.device;
  const std::vector<Outcome>& outcomes = run.outcomes;
  std::printf("%s (sm_%d), driver %s, runtime %s, nvcc %s\n", device.name.c_str(), device.arch,
              version(device.driver).c_str(), version(device.runtime).c_str(), compiler().c_str());
  const auto count = [&](Status status) {
    return std::count_if(outcomes.begin(), outcomes.end(),
                         [=](const Outcome& o) { return o.status == status; });
  };
  print(outcomes);
  std::printf("%td passed, %td failed, %td skipped\n", count(kPassed), count(kFailed),
              count(kSkipped));
  if (!json.empty()) write_json(json, device, outcomes);
  return count(kFailed) == 0 && count(kPassed) > 0 ? 0 : 1;
}

}  // namespace
}  // namespace pagoda::primitives

int main(int argc, char** argv) {
  try {
    return pagoda::primitives::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "runner: %s\n", error.what());
    return 2;
  }
}
