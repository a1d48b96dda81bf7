// ForkJoin: annotates for ThreadSanitizer what a task scheduler guarantees: bodies start after the
// fork, the join waits for every body. ThreadSanitizer can't see this in a scheduler that was not
// compiled with -fsanitize=thread (the distribution's oneTBB) and would report every access of a
// body as a race. Races between bodies are still found. Empty in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define PAGODA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PAGODA_THREAD_SANITIZER 1
#endif
#endif

#if defined(PAGODA_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#define PAGODA_UNSEEN_BY_THREAD_SANITIZER __attribute__((no_sanitize("thread")))
#else
#define PAGODA_UNSEEN_BY_THREAD_SANITIZER
#endif

namespace pagoda::cpu {

class ForkJoin {
 public:
#if defined(PAGODA_THREAD_SANITIZER)
  void fork() { __tsan_release(&forked_); }
  void begin_body() { __tsan_acquire(&forked_); }
  void end_body() { __tsan_release(&joined_); }
  void join() { __tsan_acquire(&joined_); }

 private:
  char forked_ = 0;
  char joined_ = 0;
#else
  void fork() {}
  void begin_body() {}
  void end_body() {}
  void join() {}
#endif
};

}  // namespace pagoda::cpu
