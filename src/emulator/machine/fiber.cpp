// Fibers by Boost.Context, with the calls that AddressSanitizer and ThreadSanitizer need to follow
// a change of stack.
#include "emulator/machine/fiber.hpp"

#include <cstddef>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define PAGODA_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define PAGODA_FIBER_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAGODA_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define PAGODA_FIBER_TSAN 1
#endif
#endif
#ifdef PAGODA_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef PAGODA_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace pagoda::emulator {
namespace {

// A kernel's registers are local variables: an accumulator of 256 floats and its copies fit well.
constexpr size_t kStackBytes = 128 * 1024;

boost::context::pooled_fixedsize_stack& stacks() {
  static thread_local boost::context::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

// Records the bounds of the stack, which AddressSanitizer needs at every switch.
struct TrackedStack {
  boost::context::stack_context* seen;
  boost::context::stack_context allocate() const { return *seen = stacks().allocate(); }
  void deallocate(boost::context::stack_context& stack) { stacks().deallocate(stack); }
};

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  boost::context::stack_context stack;
  boost::context::fiber inside;   // the body, while it is suspended
  boost::context::fiber outside;  // the caller of resume(), while the body runs
  bool has_started = false;
  bool is_done = false;
#ifdef PAGODA_FIBER_ASAN
  void* outside_fake = nullptr;
  void* inside_fake = nullptr;
  const void* outside_bottom = nullptr;
  size_t outside_size = 0;
#endif
#ifdef PAGODA_FIBER_TSAN
  void* inside_fiber = nullptr;
  void* outside_fiber = nullptr;
#endif

  // --- calls of the sanitizers around each change of stack ---
  void before_entering() {
#ifdef PAGODA_FIBER_ASAN
    __sanitizer_start_switch_fiber(&outside_fake, static_cast<const char*>(stack.sp) - stack.size,
                                   stack.size);
#endif
#ifdef PAGODA_FIBER_TSAN
    if (inside_fiber == nullptr) inside_fiber = __tsan_create_fiber(0);
    outside_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(inside_fiber, 0);
#endif
  }
  void after_leaving() {
#ifdef PAGODA_FIBER_ASAN
    __sanitizer_finish_switch_fiber(outside_fake, nullptr, nullptr);
#endif
  }
  void after_first_entering() {
#ifdef PAGODA_FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &outside_bottom, &outside_size);
#endif
  }
  void before_suspending() {
#ifdef PAGODA_FIBER_ASAN
    __sanitizer_start_switch_fiber(&inside_fake, outside_bottom, outside_size);
#endif
#ifdef PAGODA_FIBER_TSAN
    __tsan_switch_to_fiber(outside_fiber, 0);
#endif
  }
  void after_suspending() {
#ifdef PAGODA_FIBER_ASAN
    __sanitizer_finish_switch_fiber(inside_fake, &outside_bottom, &outside_size);
#endif
  }
  void before_last_leaving() {
#ifdef PAGODA_FIBER_ASAN
    __sanitizer_start_switch_fiber(nullptr, outside_bottom, outside_size);
#endif
#ifdef PAGODA_FIBER_TSAN
    __tsan_switch_to_fiber(outside_fiber, 0);
#endif
  }
#ifdef PAGODA_FIBER_TSAN
  ~State() {
    if (inside_fiber != nullptr) __tsan_destroy_fiber(inside_fiber);
  }
#endif
};

namespace {

// Calls a function of the state when it goes out of scope, returning or unwinding.
template <class State, void (State::*function)()>
struct AtEnd {
  State* state;
  ~AtEnd() { (state->*function)(); }
};

}  // namespace

thread_local Fiber::State* Fiber::running_ = nullptr;

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  State* state = state_.get();
  state->body = std::move(body);
  state->inside = boost::context::fiber(
      std::allocator_arg, TrackedStack{&state->stack}, [state](boost::context::fiber&& caller) {
        state->outside = std::move(caller);
        state->after_first_entering();
        const AtEnd<State, &State::before_last_leaving> leave{state};
        state->has_started = true;
        state->body();
        state->is_done = true;
        return std::move(state->outside);
      });
}

// A fiber that is suspended unwinds: that, too, runs on its stack.
Fiber::~Fiber() {
  if (state_ == nullptr || state_->is_done) return;
  if (!state_->has_started) {  // nothing to unwind: it returns at once
    state_->body = [] {};
    resume();
    return;
  }
  state_->before_entering();
  state_->inside = {};
  state_->after_leaving();
}
Fiber::Fiber(Fiber&&) noexcept = default;
Fiber& Fiber::operator=(Fiber&&) noexcept = default;

bool Fiber::is_done() const { return state_->is_done; }

void Fiber::resume() {
  State* const previous = std::exchange(running_, state_.get());
  state_->before_entering();
  state_->inside = std::move(state_->inside).resume();
  state_->after_leaving();
  running_ = previous;
}

void Fiber::suspend() {
  State* const self = running_;
  self->before_suspending();
  const AtEnd<State, &State::after_suspending> reentry{self};
  self->outside = std::move(self->outside).resume();
}

}  // namespace pagoda::emulator
