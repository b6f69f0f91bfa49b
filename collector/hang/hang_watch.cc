#include "collector/hang/hang_watch.h"

#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <set>
#include <utility>

#include "collector/hang/call_place.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kEveryNs = kSecond;
// More than this between two looks and the machine, or we, stood still: it does not count.
constexpr uint64_t kMostPassedNs = 3 * kSecond;
constexpr uint64_t kFullEveryNs = 5 * kSecond;  // where nothing was found
constexpr size_t kMostPlaces = 64;  // read in one look, at 1 ms and more; the others come next
constexpr int kSamples = 3, kMostDirectories = 3;

uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

HangWatch::HangWatch(HangWatchOptions options)
    : options_(std::move(options)),
      processes_(options_.socket, options_.own_only),
      savings_([this](const WaitVerdict& verdict, const std::string& directory,
                      const std::string& problem) {
        if (!problem.empty()) options_.on_problem(problem);
        options_.on_hang_saved(verdict, directory);
      }),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Watch(); }) {
  (void)::pthread_setname_np(thread_.native_handle(), "ranktap-hang");
}

HangWatch::~HangWatch() { (void)Finish(); }

std::string HangWatch::Finish(uint64_t asked_to_end_ns) {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
    // What ended since the last look.
    processes_.DropEnded();
    for (EndedRank& ended : processes_.TakeEnded()) {
      AddPlace(&ended);
      NoteEnd(ended);
    }
  }
  // A scheduler sends its signal to all processes at once.
  constexpr uint64_t kAtOnceNs = kSecond / 5;
  const bool was_asked = asked_to_end_ns != 0 && first_bad_ns_ + kAtOnceNs > asked_to_end_ns;
  // A job that worked for as long as it had hung did not fail of that.
  const uint64_t worked_ns =
      last_hang_.ended_ns == 0
          ? 0
          : (first_bad_ns_ != 0 ? first_bad_ns_ : ClockNs(CLOCK_MONOTONIC)) - last_hang_.ended_ns;
  const bool is_over = worked_ns > last_hang_.ended_ns - last_hang_.began_ns;
  if (!last_hang_.sentence.empty() && !is_over) return last_hang_.sentence;
  return ends_ > 1 && !was_asked ? first_bad_end_ : "";
}

// Takes note of ends as they come: the first of them is the cause of the others.
bool HangWatch::Pause(uint64_t ns) {
  const uint64_t end = ClockNs(CLOCK_MONOTONIC) + ns;
  for (uint64_t now = ClockNs(CLOCK_MONOTONIC); now < end; now = ClockNs(CLOCK_MONOTONIC)) {
    pollfd polled[] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                       {.fd = savings_.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = processes_.ends(), .events = POLLIN, .revents = 0}};
    constexpr uint64_t kMs = 1'000'000;
    (void)::poll(polled, std::size(polled), static_cast<int>((end - now) / kMs + 1));
    if (polled[0].revents != 0) return false;
    savings_.TakeFilled();  // each time: one may have been signalled before it could be taken
    processes_.DropEnded();
  }
  return true;
}

void HangWatch::Watch() {
  uint64_t before = ClockNs(CLOCK_MONOTONIC);
  while (Pause(kEveryNs)) {
    const uint64_t now = ClockNs(CLOCK_MONOTONIC);
    Look(std::min(now - before, kMostPassedNs));
    before = now;
  }
  savings_.Finish();
}

void HangWatch::NoteEnd(const EndedRank& ended) {
  const bool is_first = ++ends_ == 1;
  if (!first_bad_end_.empty() || !ended.end.wait_status) return;
  const std::string text = fmt::format("rank {}, by {}", ended.rank, EndText(ended));
  const std::string place = LastPlaceText(ended);
  if (is_first) first_end_ = place.empty() ? text : fmt::format("{} ({})", text, place);
  if (*ended.end.wait_status == 0) return;
  first_bad_ns_ = ended.end.seen_ns;
  first_bad_end_ = fmt::format("the first rank that ended badly is {}", text);
  if (!place.empty()) first_bad_end_ += "; " + place;
  // Its end may have been what the others failed of.
  if (!is_first && !first_end_.empty()) first_bad_end_ += "; before it ended " + first_end_;
}

// A rank that runs the interpreter's end has no place any more: the one before stays.
void HangWatch::NotePlaces() {
  const uint64_t now = ClockNs(CLOCK_MONOTONIC);
  const auto& ranks = processes_.ranks();
  std::erase_if(readers_, [&](const auto& entry) { return !ranks.contains(entry.first); });
  for (size_t i = 0; i < std::min(ranks.size(), kMostPlaces); ++i) {
    auto next = ranks.upper_bound(last_placed_);
    if (next == ranks.end()) next = ranks.begin();
    last_placed_ = next->first;
    Readers& readers = ReadersOf(last_placed_);
    const ProcessStacks stacks = readers.stacks.Read();
    const ThreadStack* const main = MainThreadOf(stacks);
    if (main == nullptr) continue;
    readers.place = ChainOf(*main);
    readers.placed_ns = now;
    readers.is_in_loader = IsInLoader(*main);
  }
}

HangWatch::Readers& HangWatch::ReadersOf(pid_t process) {
  return readers_.try_emplace(process, process).first->second;
}

void HangWatch::AddPlace(EndedRank* ended) {
  const auto last = readers_.find(ended->pid);
  if (last == readers_.end() || last->second.placed_ns == 0) return;
  ended->last_place = last->second.place;
  if (ended->child && last->second.is_in_loader) ended->child->is_loaders = true;
  ended->last_age_ns = ended->end.seen_ns - last->second.placed_ns;
}

void HangWatch::Look(uint64_t passed_ns) {
  processes_.Update();
  std::map<std::string, uint32_t> worlds;
  for (const auto& [pid, process] : processes_.ranks()) {
    Job& job = jobs_.try_emplace(process.job, options_.limits).first->second;
    job.user = process.user;
    worlds[process.job] = std::max(worlds[process.job], process.world);
  }
  for (EndedRank& ended : processes_.TakeEnded()) {
    AddPlace(&ended);
    NoteEnd(ended);
    const auto job = jobs_.find(ended.job);
    if (job != jobs_.end()) job->second.rules.TakeEnded(ended);
  }
  std::erase_if(jobs_, [&](const auto& entry) { return !worlds.contains(entry.first); });
  std::vector<std::string> sentences;
  std::vector<WaitNotice> notices;
  for (auto& [name, job] : jobs_) {
    job.rules.SetWorld(worlds[name]);
    LookAtJob(name, passed_ns, &job);
    if (job.verdict.grade == WaitGrade::kNone) continue;
    notices.push_back({job.user, job.verdict.sentence});
    sentences.push_back(job.verdict.sentence);
  }
  NotePlaces();
  if (sentences == notices_) return;
  notices_ = std::move(sentences);
  options_.on_notices(std::move(notices));
}

std::vector<RankLook> HangWatch::LookAtAll(const std::string& name) {
  std::vector<RankLook> looks;
  for (const auto& [pid, process] : processes_.ranks()) {
    if (process.job != name) continue;
    looks.push_back(LookAt(process.rank, pid, &ReadersOf(pid).cuda));
    looks.back().ended_children = processes_.EndedChildrenOf(pid);
  }
  return looks;
}

void HangWatch::LookAtJob(const std::string& name, uint64_t passed_ns, Job* job) {
  if (!job->rules.AllStopped()) job->clock_ns += passed_ns;
  const uint64_t now = job->clock_ns;
  // A second apart while somebody waits: three equal looks in a row tell that a rank stands still.
  const bool is_full = job->rules.IsSuspicious(now) && now >= job->next_full_ns;
  if (is_full) {
    for (RankLook& look : LookAtAll(name)) job->rules.Take(std::move(look), now);
  } else {
    for (const auto& [pid, process] : processes_.ranks()) {
      if (process.job == name)
        job->rules.Take(GlanceAt(process.rank, pid, &ReadersOf(pid).cuda), now);
    }
  }
  if (!job->rules.IsSuspicious(now)) {
    if (job->is_told) last_hang_.ended_ns = ClockNs(CLOCK_MONOTONIC);
    job->verdict = {};
    job->is_told = false;
    return;
  }
  if (!is_full) return;
  job->verdict = job->rules.Judge(now);
  if (job->verdict.cause == WaitCause::kNone || job->is_told)
    job->next_full_ns = now + kFullEveryNs;
  if (job->verdict.grade == WaitGrade::kHang && !job->is_told) Tell(name, job);
}

void HangWatch::Tell(const std::string& name, Job* job) {
  job->is_told = true;
  last_hang_ = {.sentence = job->verdict.sentence,
                .began_ns = ClockNs(CLOCK_MONOTONIC) - job->verdict.waited_ns};
  std::vector<pid_t> ranks;
  for (const RankLook* const look : job->rules.Looks()) ranks.push_back(look->pid);
  std::string path;
  const FileDescriptor parent = options_.place(ranks, &path);
  std::optional<HangDirectory> directory;
  const uint64_t now = ClockNs(CLOCK_REALTIME);
  if (parent.valid() && job->directories < kMostDirectories) {
    Result<HangDirectory> made = HangDirectory::Create(parent.get(), path, now);
    if (made) directory.emplace(std::move(*made));
    if (!made) options_.on_problem(made.message());
  }
  if (directory) {
    ++job->directories;
    directory->WriteVerdict(job->verdict, job->rules.Looks(), now);
  }
  options_.on_hang(job->verdict, directory ? directory->path() : "");
  if (!directory) return options_.on_hang_saved(job->verdict, "");
  HangWatchOptions::AddRest add_rest = options_.gather(job->rules.Looks());
  for (int i = 1; i <= kSamples; ++i) {
    const std::vector<RankLook> looks = LookAtAll(name);
    directory->WriteStacks(i, looks);
    if (i == 1) directory->WriteProcFacts(looks);
    if (i < kSamples && !Pause(kSecond)) break;
  }
  savings_.Add(job->verdict, std::move(*directory), std::move(add_rest));
}

}  // namespace ranktap::collector
