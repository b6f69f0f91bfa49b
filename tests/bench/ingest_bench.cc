// How many kernel events one collector takes from 64 processes that send as fast as they can: from
// the first byte to the last ack, files written. The senders replay frames encoded beforehand; the
// floor is a process that reads the same bytes from the same sockets and throws them away. Then
// how much memory it takes where 512 send an eighth of that each, or at least eight frames.
// Usage: ingest_bench DIRECTORY [EVENTS_PER_RANK [EVENTS_PER_SECOND [PAIRS]]]
// At EVENTS_PER_SECOND, of all ranks together, it says instead what a load that lasts costs; with
// PAIRS, what --keep adds to that: so many runs with it and as many without, in turn.
#include <malloc.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "collector/ingest/collector.h"
#include "collector/ingest/net/private_socket.h"
#include "collector/trace/load/trace_check.h"
#include "tests/bench/figure.h"
#include "tests/fakes/fake_agent/fake_agent.h"

namespace ranktap::bench {
namespace {

using namespace ranktap::collector;

constexpr int kRanks = 64, kManyRanks = 512;
constexpr uint32_t kEventsPerFrame = 20'000;
constexpr uint32_t kNames = 48;
// Different ones in turn, together longer than a block, so that no block compresses by repeating.
constexpr uint32_t kFrames = 8;

// Kernels of a training step: lengths of 2 to 200 us, gaps of some us, 48 names, 8 of 9 on one
// stream. Deterministic.
std::vector<proto::KernelEvent> MakeKernels(const std::vector<proto::ArenaRef>& names,
                                            proto::ArenaRef shape, uint64_t seed) {
  std::vector<proto::KernelEvent> kernels(kEventsPerFrame);
  uint64_t random = 88172645463325252ull + seed, time = 1'700'000'000'000'000'000ull;
  for (uint32_t i = 0; i < kEventsPerFrame; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    proto::KernelEvent& kernel = kernels[i];
    kernel.header.kind = static_cast<uint16_t>(proto::KernelEvent::kKind);
    kernel.header.bytes = sizeof(kernel);
    kernel.start_ns = time += 500 + random % 8000;
    kernel.end_ns = time += 2000 + (random >> 16) % 200'000;
    kernel.correlation = 1000 + 3 * i + static_cast<uint32_t>((random >> 40) % 2);
    kernel.context = 1;
    kernel.stream = (random >> 50) % 9 == 0 ? 20 : 7;
    kernel.name = names[(random >> 33) % names.size()];
    kernel.shape = shape;
  }
  return kernels;
}

struct RefIds {
  uint32_t IdOf(proto::EntryKind, proto::ArenaRef ref) { return ref == 0 ? 0 : ids.at(ref); }
  uint32_t IdOfText(std::span<const std::byte>) { return 0; }
  std::map<proto::ArenaRef, uint32_t> ids;
};

void SleepUntil(double ns) {
  const double left = ns - NowNs();
  if (left > 0) ::usleep(static_cast<useconds_t>(left / 1e3));
}

// One rank: names by the fake agent, then frames whose positions alone are new.
class Rank {
 public:
  explicit Rank(uint32_t rank) : agent_({.rank = rank, .chunks = 2}) {
    writer_ = agent_.AddWriter();
  }

  void Introduce(const std::string& socket) {
    (void)agent_.Join(socket);
    RefIds ids;
    std::vector<proto::ArenaRef> names;
    for (uint32_t i = 0; i < kNames; ++i) {
      names.push_back(
          agent_.InternText("void kernel_of_a_layer<float, " + std::to_string(i) + ">"));
      ids.ids[names.back()] = i + 1;
    }
    const proto::ArenaRef shape = agent_.InternShape({});
    ids.ids[shape] = 1;
    for (const proto::ArenaRef name : names) {  // so that every name is told
      proto::KernelEvent kernel{};
      kernel.name = name;
      kernel.shape = shape;
      agent_.Emit(writer_, kernel);
    }
    agent_.Flush();
    agent_.SendClock();
    for (uint32_t i = 0; i < kFrames; ++i) frames_.push_back(MakeFrame(names, shape, i, ids));
    next_ = agent_.committed(writer_);
  }
  size_t frame_bytes() const { return frames_[0].size(); }

  // `pause_ns`: between the beginnings of two frames.
  void Replay(uint32_t frames, double pause_ns) {
    const double start = NowNs();
    for (uint32_t i = 0; i < frames; ++i, next_ += kEventsPerFrame) {
      SleepUntil(start + pause_ns * i);
      std::string& frame = frames_[i % kFrames];
      proto::FrameHeader header;
      std::memcpy(&header, frame.data(), sizeof(header));
      header.first_event = next_;
      header.header_crc = proto::Crc32c(
          std::as_bytes(std::span(&header, 1)).first(offsetof(proto::FrameHeader, header_crc)));
      std::memcpy(frame.data(), &header, sizeof(header));
      agent_.SendRaw(std::as_bytes(std::span(frame)));
    }
    // What the rings would say.
    agent_.slot(writer_).produced = next_;
    const uint64_t all = agent_.frames_sent() + frames;
    for (uint64_t acked = 0; acked < all;) {
      const auto frame = agent_.Receive(60'000);
      v1::Ack ack;
      if (!frame) throw std::runtime_error("the collector closed the connection");
      if (frame->header.type == proto::FrameType::kAck && ack.ParseFromString(frame->payload)) {
        acked = ack.frames();
      }
    }
    agent_.LeaveLastWords();
  }

 private:
  std::string MakeFrame(const std::vector<proto::ArenaRef>& names, proto::ArenaRef shape,
                        uint64_t seed, RefIds& ids) const {
    const auto kernels = MakeKernels(names, shape, seed);
    proto::EventEncoder encoder;
    for (const proto::KernelEvent& kernel : kernels) {
      if (!encoder.Add(&kernel.header, sizeof(kernel))) throw std::logic_error("bad event");
    }
    std::string payload;
    encoder.Encode(ids, payload);
    const auto header = proto::MakeFrameHeader(
        {.type = proto::FrameType::kEvents, .writer = writer_, .events = kEventsPerFrame},
        std::as_bytes(std::span(payload)));
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload;
  }

  fakes::FakeAgent agent_;
  uint32_t writer_ = 0;
  std::vector<std::string> frames_;
  uint64_t next_ = 0;
};

struct Pipe {
  int read_end, write_end;
  Pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    read_end = ends[0], write_end = ends[1];
  }
};

// Ranks that wait for `go` to be closed; `ready` gets a byte of each.
std::vector<pid_t> StartRanks(int ranks, const Pipe& ready, const Pipe& go, auto&& prepare,
                              auto&& send) {
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(ranks); ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(go.write_end);
      int status = 1;
      try {
        auto state = prepare(rank);
        char byte = 0;
        (void)!::write(ready.write_end, &byte, 1);
        (void)!::read(go.read_end, &byte, 1);
        send(*state);
        status = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
      }
      ::_exit(status);
    }
    children.push_back(child);
  }
  return children;
}

void AwaitAll(int ranks, const Pipe& ready) {
  for (int i = 0; i < ranks; ++i) {
    char byte;
    if (::read(ready.read_end, &byte, 1) != 1) throw std::runtime_error("a rank did not start");
  }
}

void WaitForAll(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = 0;
    (void)::waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error("a rank failed");
  }
}

uint64_t AnonymousKib(pid_t pid) {
  std::ifstream input("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(input, line);) {
    if (line.starts_with("RssAnon:")) return std::strtoull(line.c_str() + 8, nullptr, 10);
  }
  return 0;
}

double CpuSecondsOfThreads(pid_t pid) {
  double ns = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    double own = 0;
    std::ifstream(task.path() / "schedstat") >> own;
    ns += own;
  }
  return ns / 1e9;
}

struct Measured {
  double seconds = 0, collector_cpu = 0;
  double cpu_while_all_sent = 0;  // of the collector, until the first rank ended
  uint64_t anonymous_kib = 0;
};

// The collector in a process of its own, so that its CPU and memory can be told apart.
pid_t StartCollector(PrivateSocket* socket, const std::string& directory, const Pipe& stop,
                     KeepLimits keep = {}) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(stop.write_end);
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);  // as ranktap's main does
  ServerOptions options;
  options.collector_id = RandomId();
  options.collector_version = "bench";
  options.owner = ::geteuid();
  options.keep = keep;
  Collector collector(socket->TakeListener(), std::move(*RunDirectory::Create(directory, "run")),
                      RunInfo{.run = "bench"}, options);
  char byte;
  (void)!::read(stop.read_end, &byte, 1);
  (void)collector.Finish(30'000'000'000, [](RunInfo*) {});
  ::_exit(0);
}

Measured MeasureCollector(const std::string& directory, uint32_t frames, double pause_ns,
                          KeepLimits keep = {}, int senders = kRanks) {
  PrivateSocket socket = std::move(*PrivateSocket::Create());
  const Pipe stop;
  const pid_t collector = StartCollector(&socket, directory, stop, keep);
  const Pipe ready,
      go;  // after the fork: a copy of their ends in the collector would hold them open
  const auto ranks = StartRanks(
      senders, ready, go,
      [&](uint32_t rank) {
        ::close(stop.write_end);
        auto state = std::make_unique<Rank>(rank);
        state->Introduce(socket.path());
        return state;
      },
      [&](Rank& rank) { rank.Replay(frames, pause_ns); });
  AwaitAll(senders, ready);
  Measured measured;
  const double start = NowNs();
  ::close(go.write_end);
  size_t left = ranks.size();
  for (; left > 0; ::usleep(5000)) {
    measured.anonymous_kib = std::max(measured.anonymous_kib, AnonymousKib(collector));
    const double cpu = CpuSecondsOfThreads(collector);
    if (left == ranks.size()) measured.cpu_while_all_sent = cpu;
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0; --left) {
      if (status != 0) throw std::runtime_error("a rank failed");
    }
  }
  measured.seconds = (NowNs() - start) / 1e9;
  ::close(stop.write_end);
  rusage usage{};
  (void)::wait4(collector, nullptr, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  measured.collector_cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return measured;
}

// The same bytes through as many sockets to one reader that keeps nothing.
double MeasureFloor(size_t frame_bytes, uint32_t frames) {
  const Pipe ready, go;
  int sockets[kRanks][2];
  for (auto& pair : sockets) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      throw std::runtime_error("socketpair");
    }
  }
  const auto ranks = StartRanks(
      kRanks, ready, go, [&](uint32_t rank) { return std::make_unique<int>(sockets[rank][1]); },
      [&](int socket) {
        const std::string frame(frame_bytes, 'x');
        for (uint32_t i = 0; i < frames; ++i) {
          for (size_t sent = 0; sent < frame.size();) {
            const ssize_t size = ::send(socket, frame.data() + sent, frame.size() - sent, 0);
            if (size <= 0) throw std::runtime_error("send");
            sent += static_cast<size_t>(size);
          }
        }
      });
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (auto& pair : sockets) {
    ::close(pair[1]);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = pair[0];
    (void)::epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event);
  }
  AwaitAll(kRanks, ready);
  std::vector<char> buffer(256 << 10);
  const double start = NowNs();
  ::close(go.write_end);
  const uint64_t all = uint64_t{kRanks} * frames * frame_bytes;
  for (uint64_t total = 0; total < all;) {
    epoll_event events[kRanks];
    const int count = ::epoll_wait(epoll, events, kRanks, 10'000);
    if (count <= 0) throw std::runtime_error("the floor's senders stopped");
    for (int i = 0; i < count; ++i) {
      const ssize_t size = ::recv(events[i].data.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size > 0) total += static_cast<uint64_t>(size);
    }
  }
  const double seconds = (NowNs() - start) / 1e9;
  WaitForAll(ranks);
  return seconds;
}

// The files hold what was sent, to the last event.
void CheckStored(const std::string& directory, uint64_t expected) {
  const Result<RunCheck> check = CheckRun(directory);
  uint64_t events = 0, lost = 0;
  if (check) {
    for (const TraceCheck& trace : check->traces) events += trace.events, lost += trace.lost;
  }
  if (!check || !check->ok() || events != expected || lost != 0) {
    throw std::runtime_error("stored " + std::to_string(events) + " of " +
                             std::to_string(expected) + " events, " + std::to_string(lost) +
                             " declared lost");
  }
}

void RunPaced(const std::string& directory, uint32_t events_per_rank, double events_per_second) {
  const uint32_t frames = std::max(1u, events_per_rank / kEventsPerFrame);
  const double pause_ns = 1e9 * kRanks * kEventsPerFrame / events_per_second;
  const Measured measured = MeasureCollector(directory + "/run", frames, pause_ns);
  CheckStored(directory + "/run", uint64_t{kRanks} * (frames * kEventsPerFrame + kNames));
  const double events = double{kRanks} * frames * kEventsPerFrame;
  char note[160];
  std::snprintf(note, sizeof(note), "%.4g M events in %.0f s, none lost, files verified",
                events / 1e6, measured.seconds);
  Print({.name = "collector, sustained from 64 processes",
         .value = events / measured.seconds / 1e6,
         .unit = "M/s",
         .floor_name = "",
         .target = 0.95 * events_per_second / 1e6,
         .at_least = true,
         .note = note});
  Print({.name = "collector, sustained, CPU",
         .value = measured.collector_cpu / measured.seconds,
         .unit = "cores",
         .floor_name = "",
         .target = 1,
         .note = ""});
  Print({.name = "collector, sustained, anonymous memory",
         .value = static_cast<double>(measured.anonymous_kib) / 1024,
         .unit = "MiB",
         .floor_name = "",
         .target = 256,
         .note = "largest of a reading each 5 ms"});
}

// A segment is ten seconds long: a run is to be longer. At its end the files of a rank become one.
void RunPairs(const std::string& directory, uint32_t events_per_rank, double events_per_second,
              int pairs) {
  const KeepLimits keep{.ns = 60'000'000'000};
  const uint32_t frames = std::max(1u, events_per_rank / kEventsPerFrame);
  const double pause_ns = 1e9 * kRanks * kEventsPerFrame / events_per_second;
  std::vector<double> without, with;
  for (int i = 0; i < 2 * pairs; ++i) {
    const bool keeps = i % 4 == 1 || i % 4 == 2;  // without, with, with, without
    const std::string run = directory + "/run" + std::to_string(i);
    const Measured measured = MeasureCollector(run, frames, pause_ns, keeps ? keep : KeepLimits{});
    std::filesystem::remove_all(run);
    (keeps ? with : without).push_back(measured.cpu_while_all_sent);
  }
  double sum = 0, squares = 0;
  for (int i = 0; i < pairs; ++i) {
    const double ratio = std::log(with[i] / without[i]);
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / pairs;
  const double error = std::sqrt((squares / pairs - mean * mean) / std::max(1, pairs - 1));
  constexpr double kTwoSided = 2.3;  // Student's t at 8 degrees of freedom, 95 %
  char note[160];
  std::snprintf(note, sizeof(note), "%d pairs, %.3f to %.3f; without: %.3f us a thousand events",
                pairs, std::exp(mean - kTwoSided * error), std::exp(mean + kTwoSided * error),
                without[0] * 1e9 / (double{kRanks} * frames * kEventsPerFrame));
  Print({.name = "collector, CPU with --keep over without",
         .value = std::exp(mean),
         .unit = "times",
         .floor_name = "",
         .note = note});
}

void Run(const std::string& directory, uint32_t events_per_rank) {
  const uint32_t frames = std::max(1u, events_per_rank / kEventsPerFrame);
  const uint64_t replayed = uint64_t{kRanks} * frames * kEventsPerFrame;
  size_t frame_bytes = 0;
  {
    PrivateSocket socket = std::move(*PrivateSocket::Create());
    const Pipe stop;
    const pid_t collector = StartCollector(&socket, directory + "/size", stop);
    Rank rank(0);
    rank.Introduce(socket.path());
    frame_bytes = rank.frame_bytes();
    ::close(stop.write_end);
    (void)::waitpid(collector, nullptr, 0);
  }
  const double floor_seconds = MeasureFloor(frame_bytes, frames);
  const Measured measured = MeasureCollector(directory + "/run", frames, /*pause_ns=*/0);
  CheckStored(directory + "/run", replayed + kRanks * kNames);
  const auto events = static_cast<double>(replayed);
  char note[160];
  std::snprintf(note, sizeof(note), "%.3g M events, %.2f B each on the wire, files verified",
                events / 1e6, static_cast<double>(frame_bytes) / kEventsPerFrame);
  Print({.name = "collector, kernel events from 64 processes",
         .value = events / measured.seconds / 1e6,
         .unit = "M/s",
         .floor_name = "the same bytes read and dropped",
         .floor = events / floor_seconds / 1e6,
         .target = 8,
         .at_least = true,
         .note = note});
  Print({.name = "collector, CPU for a thousand events",
         .value = measured.collector_cpu * 1e9 / events,
         .unit = "us",
         .floor_name = "",
         .note = "its own, the senders' apart"});
  Print({.name = "collector, anonymous memory with 64 processes",
         .value = static_cast<double>(measured.anonymous_kib) / 1024,
         .unit = "MiB",
         .floor_name = "",
         .target = 64,
         .note = "largest of a reading each 5 ms"});
  const uint32_t fewer = std::max(8u, frames * kRanks / kManyRanks);
  const Measured many = MeasureCollector(directory + "/many", fewer, 0, {}, kManyRanks);
  CheckStored(directory + "/many", uint64_t{kManyRanks} * (fewer * kEventsPerFrame + kNames));
  Print({.name = "collector, anonymous memory with 512 processes",
         .value = static_cast<double>(many.anonymous_kib) / 1024,
         .unit = "MiB",
         .floor_name = "",
         .target = 128,
         .note = "the same"});
}

}  // namespace
}  // namespace ranktap::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY [EVENTS_PER_RANK [EVENTS_PER_SECOND [PAIRS]]]\n",
                 argv[0]);
    return 2;
  }
  const auto events = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 400'000;
  const double rate = argc > 3 ? std::atof(argv[3]) : 0;
  // A bench that hangs says nothing to anybody.
  const int pairs = argc > 4 ? std::atoi(argv[4]) : 0;
  ::alarm(300 + (rate > 0 ? static_cast<unsigned>(64.0 * events / rate * (2 * pairs + 1)) : 0));
  try {
    if (rate > 0 && pairs > 0) {
      ranktap::bench::RunPairs(argv[1], events, rate, pairs);
    } else if (rate > 0) {
      ranktap::bench::RunPaced(argv[1], events, rate);
    } else {
      ranktap::bench::Run(argv[1], events);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ingest_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
