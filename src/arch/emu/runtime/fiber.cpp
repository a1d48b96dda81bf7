// Fibers by Boost.Context, with the calls that AddressSanitizer and ThreadSanitizer need to follow
// a change of stack.
#include "arch/emu/runtime/fiber.hpp"

#include <cstddef>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define PAGODA_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAGODA_FIBER_ASAN 1
#endif
#endif
#ifdef PAGODA_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace pagoda::emulator {
namespace {

// A kernel's registers are local variables: an accumulator of 256 floats and its copies fit well.
constexpr size_t kStackBytes = 128 * 1024;

boost::context::pooled_fixedsize_stack& stacks() {
  static thread_local boost::context::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

// Keeps the stack's bounds, which AddressSanitizer wants at every switch.
struct TrackedStack {
  boost::context::stack_context* seen;
  boost::context::stack_context allocate() { return *seen = stacks().allocate(); }
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

  void start_entering() {
    __sanitizer_start_switch_fiber(&outside_fake, static_cast<const char*>(stack.sp) - stack.size,
                                   stack.size);
  }
  // Leaves the fiber for good, returning or unwinding.
  struct LastLeave {
    State* self;
    ~LastLeave() {
      __sanitizer_start_switch_fiber(nullptr, self->outside_bottom, self->outside_size);
    }
  };
  // Back inside after a suspension, to go on or to unwind.
  struct Reentry {
    State* self;
    ~Reentry() {
      __sanitizer_finish_switch_fiber(self->inside_fake, &self->outside_bottom,
                                      &self->outside_size);
    }
  };
#endif
};

thread_local Fiber::State* Fiber::running_ = nullptr;

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  State* state = state_.get();
  state->body = std::move(body);
  state->inside = boost::context::fiber(
      std::allocator_arg, TrackedStack{&state->stack}, [state](boost::context::fiber&& caller) {
        state->outside = std::move(caller);
#ifdef PAGODA_FIBER_ASAN
        __sanitizer_finish_switch_fiber(nullptr, &state->outside_bottom, &state->outside_size);
        const State::LastLeave leave{state};
#endif
        state->has_started = true;
        state->body();
        state->is_done = true;
        return std::move(state->outside);
      });
}

// A fiber that is suspended unwinds: that, too, runs on its stack.
Fiber::~Fiber() {
#ifdef PAGODA_FIBER_ASAN
  if (state_ == nullptr || state_->is_done) return;
  if (!state_->has_started) {  // nothing to unwind: it returns at once
    state_->body = [] {};
    resume();
    return;
  }
  state_->start_entering();
  state_->inside = {};
  __sanitizer_finish_switch_fiber(state_->outside_fake, nullptr, nullptr);
#endif
}
Fiber::Fiber(Fiber&&) noexcept = default;
Fiber& Fiber::operator=(Fiber&&) noexcept = default;

bool Fiber::is_done() const { return state_->is_done; }

void Fiber::resume() {
  State* const previous = std::exchange(running_, state_.get());
#ifdef PAGODA_FIBER_ASAN
  state_->start_entering();
#endif
  state_->inside = std::move(state_->inside).resume();
#ifdef PAGODA_FIBER_ASAN
  __sanitizer_finish_switch_fiber(state_->outside_fake, nullptr, nullptr);
#endif
  running_ = previous;
}

void Fiber::suspend() {
  State* const self = running_;
#ifdef PAGODA_FIBER_ASAN
  __sanitizer_start_switch_fiber(&self->inside_fake, self->outside_bottom, self->outside_size);
  const State::Reentry reentry{self};
#endif
  self->outside = std::move(self->outside).resume();
}

}  // namespace pagoda::emulator
