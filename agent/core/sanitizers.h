// Programs built with a sanitizer. The agent is not: its atomics do not exist for ThreadSanitizer,
// which sees allocations of our threads race with each other and ends the program with status 66;
// and LeakSanitizer counts as the program's what CUPTI allocates for us. Both have calls for that,
// which are null in every other program. Runs on: our own threads.  May not: be called from a hook.
#pragma once

extern "C" {
[[gnu::weak, gnu::visibility("default")]] void __tsan_ignore_thread_begin();
[[gnu::weak, gnu::visibility("default")]] void __tsan_ignore_thread_end();
[[gnu::weak, gnu::visibility("default")]] void __tsan_acquire(void* address);
[[gnu::weak, gnu::visibility("default")]] void __lsan_ignore_object(const void* object);
}

namespace ranktap::agent {

#if defined(__SANITIZE_THREAD__)
#define RANKTAP_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RANKTAP_UNDER_TSAN
#endif
#endif

// While this lives, nothing that its thread does is looked at; unless we are built with TSan.
class HiddenFromTsan {
 public:
#if defined(RANKTAP_UNDER_TSAN)
  HiddenFromTsan() {}
#else
  HiddenFromTsan() {
    if (__tsan_ignore_thread_begin != nullptr) __tsan_ignore_thread_begin();
  }
  ~HiddenFromTsan() {
    if (__tsan_ignore_thread_end != nullptr) __tsan_ignore_thread_end();
  }
#endif
  HiddenFromTsan(const HiddenFromTsan&) = delete;
  HiddenFromTsan& operator=(const HiddenFromTsan&) = delete;
};

// TSan does not know pthread_mutex_clocklock: after it, this says that the mutex is held.
inline void TellTsanLocked([[maybe_unused]] void* mutex) {
#if defined(RANKTAP_UNDER_TSAN)
  __tsan_acquire(mutex);
#endif
}

// The block at `object` is not a leak of the program's.
inline void HideFromLeakCheck(const void* object) {
  if (__lsan_ignore_object != nullptr && object != nullptr) __lsan_ignore_object(object);
}

}  // namespace ranktap::agent
