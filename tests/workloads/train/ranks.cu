#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/workloads/train/model.h"
#include "tests/workloads/train/ranks.h"

namespace train {
namespace {

constexpr char kMeetingVariable[] = "TRAIN_CUDA_MEETING_FD";

// In a memfd that every rank inherits.
struct Meeting {
  pthread_barrier_t barrier;
  float values[1][kParameters];  // one row per rank
};

size_t MeetingBytes(int ranks) {
  return sizeof(Meeting) + static_cast<size_t>(ranks - 1) * sizeof(float) * kParameters;
}

Meeting* MapMeeting(int file, int ranks) {
  void* mapped = mmap(nullptr, MeetingBytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<Meeting*>(mapped);
}

bool MakeMeeting(int ranks) {
  int file = memfd_create("train_cuda", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(MeetingBytes(ranks))) != 0) return false;
  Meeting* meeting = MapMeeting(file, ranks);
  if (meeting == nullptr) return false;
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&meeting->barrier, &shared, static_cast<unsigned>(ranks));
  setenv(kMeetingVariable, std::to_string(file).c_str(), 1);
  return true;
}

int Number(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

pid_t StartRank(int rank, int count, char** argv) {
  pid_t child = fork();
  if (child != 0) return child;
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
  execv("/proc/self/exe", argv);
  std::perror("train_cuda: exec");
  _exit(127);
}

}  // namespace

bool RankFromEnvironment(Rank* rank) {
  if (std::getenv("RANK") == nullptr) return false;
  rank->rank = Number("RANK", 0);
  rank->local_rank = Number("LOCAL_RANK", rank->rank);
  rank->world_size = Number("WORLD_SIZE", 1);
  return true;
}

int RunRanks(int count, char** argv) {
  if (!MakeMeeting(count)) {
    std::perror("train_cuda: shared memory for the gradients");
    return 1;
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) children.push_back(StartRank(rank, count, argv));
  int failed = 0;
  for (int left = count; left > 0; --left) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    failed = 1;
    std::fprintf(stderr, "train_cuda: process %d failed (status %d)\n", ended, status);
    for (pid_t child : children) {
      if (child != ended) kill(child, SIGTERM);
    }
  }
  return failed;
}

void SumOverRanks(const Rank& rank, float* values, int count) {
  static Meeting* meeting = [&]() -> Meeting* {
    int file = Number(kMeetingVariable, -1);
    return file < 0 || rank.world_size < 2 ? nullptr : MapMeeting(file, rank.world_size);
  }();
  if (meeting == nullptr) return;
  std::memcpy(meeting->values[rank.rank], values, sizeof(float) * static_cast<size_t>(count));
  pthread_barrier_wait(&meeting->barrier);
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int other = 0; other < rank.world_size; ++other) sum += meeting->values[other][i];
    values[i] = sum;
  }
  // Nobody may write the next step's values before everybody has read these.
  pthread_barrier_wait(&meeting->barrier);
}

}  // namespace train
