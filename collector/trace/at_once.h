// Work that shares nothing, on all processors.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <future>
#include <thread>
#include <vector>

#include "collector/trace/processors.h"

namespace ranktap::collector {

// As many as there are processors, and no more than `count`.
inline size_t ThreadsFor(size_t count) { return std::min(count, ProcessorCount()); }

// Calls visit(i) for each i below `count`, on this thread and `helpers` more, and returns when all
// are done. Where one throws, no other begins, and the first that was thrown is thrown here.
template <typename Visit>
void ForEachOn(size_t helpers, size_t count, Visit&& visit) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) visit(i);
    } catch (...) {
      next = count;
      if (!has_failed.exchange(true)) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < helpers; ++i) threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

// The same on all processors.
template <typename Visit>
void ForEachAtOnce(size_t count, Visit&& visit) {
  ForEachOn(ThreadsFor(std::max<size_t>(count, 1)) - 1, count, visit);
}

// The same within the loading of a trace: on the processors that load no other.
template <typename Visit>
void ForEachOnIdle(size_t count, Visit&& visit) {
  const auto helpers = BusyThreads::OnIdle(std::max<size_t>(count, 1) - 1);
  ForEachOn(helpers.count(), count, visit);
}

// make(i) of each i below `count` on other threads, in about their order; take(i, what it made) on
// this one, in their order and as soon as it is there. It ends where take() says false, or where
// either throws.
template <typename Make, typename Take>
void MakeAtOnce(size_t count, Make&& make, Take&& take) {
  using Made = decltype(make(size_t{0}));
  std::vector<std::promise<Made>> made(count);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        made[i].set_value(make(i));
      } catch (...) {
        made[i].set_exception(std::current_exception());
      }
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < ThreadsFor(count); ++i) threads.emplace_back(work);
  struct NoMore {
    ~NoMore() { *next = count; }
    std::atomic<size_t>* next;
    size_t count;
  };
  const NoMore at_the_end{&next, count};
  for (size_t i = 0; i < count; ++i) {
    if (!take(i, made[i].get_future().get())) return;
  }
}

}  // namespace ranktap::collector
