// One suspended or running control flow with a stack of its own: a thread of the emulated kernel.
#pragma once

#include <functional>
#include <memory>

namespace pagoda::emulator {

class Fiber {
 public:
  // `body` starts at the first resume(). It may end or suspend, and must not throw.
  explicit Fiber(std::function<void()> body);
  ~Fiber();  // unwinds the stack of a body that has not ended
  Fiber(Fiber&&) noexcept;
  Fiber& operator=(Fiber&&) noexcept;

  void resume();          // from outside: runs until the body suspends or ends
  static void suspend();  // from inside: back to the caller of resume()
  [[nodiscard]] bool is_done() const;

 private:
  struct State;
  static thread_local State* running_;
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::emulator
