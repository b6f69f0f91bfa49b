#include "tests/fakes/cupti/request_thread.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace ranktap::standin {
namespace {

struct Desk {
  std::mutex one_at_a_time;
  std::mutex mutex;
  std::condition_variable changed;
  void (*ask)(void*) = nullptr;  // null: nothing to do
  void* argument = nullptr;
};

void Serve(Desk* desk) {
  pthread_setname_np(pthread_self(), "cupti-collector");
  std::unique_lock lock(desk->mutex);
  for (;;) {
    desk->changed.wait(lock, [desk] { return desk->ask != nullptr; });
    desk->ask(desk->argument);
    desk->ask = nullptr;
    desk->changed.notify_all();
  }
}

Desk* Open() {
  Desk* desk = new Desk;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(Serve, desk).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return desk;
}

}  // namespace

void AskOnOwnThread(void (*ask)(void* argument), void* argument) {
  static Desk* desk = Open();
  std::lock_guard turn(desk->one_at_a_time);
  std::unique_lock lock(desk->mutex);
  desk->ask = ask;
  desk->argument = argument;
  desk->changed.notify_all();
  desk->changed.wait(lock, [] { return desk->ask == nullptr; });
}

}  // namespace ranktap::standin
