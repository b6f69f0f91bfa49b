// The drain thread: arms and disarms CUPTI as the level asks, turns completed buffers into events,
// asks for them once in a while, and gets the last ones out when the process ends.
// Runs on: a thread of its own; Prepare and StartThread on the thread inside cuInit or the sender.
// May not: wait on a user thread, force a flush while the program runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/core/agent_config.h"
#include "agent/core/own_thread.h"
#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_buffers.h"
#include "agent/sources/cupti/cupti_calls.h"
#include "agent/sources/cupti/cupti_records.h"
#include "agent/sources/cupti/cupti_session.h"
#include "agent/sources/source.h"
#include "proto/cupti_trial.h"

namespace ranktap::agent::cupti {

class Drain {
 public:
  // Loads CUPTI and its tables. False: there is none; the reason is announced.
  [[nodiscard]] bool Prepare();

  // Makes what is armed fit the level. Before StartThread on the starting thread, then only on
  // ours.
  void ApplyLevel(proto::Level level);
  [[nodiscard]] bool StartThread();

  // The program's own CUPTI client wants in (cupti_client.h). Runs on: the program's thread;
  // returns when CUPTI is free, after kYieldPatience at the latest.
  void YieldToClient(const char* why);
  void ResumeAfterClient();

  // The thread leaves after the round it is at; what CUPTI completes meanwhile stays queued.
  void Pause();
  // After its end. Runs on: the program's thread, whose rights the new one has.
  void Resume();

  // From any thread: the level to be, whether CUPTI may be called, the end.
  void RequestLevel(proto::Level level, proto::GapReason reason);
  void TakeTrial(proto::TrialOutcome outcome);
  void Finish(uint64_t deadline_ns);

  void AddCost(CostFields& cost) const;

 private:
  void MakeTables();
  void AskForTrial();
  void HeedTrial();
  void NoteTrial();
  void LearnVersion();
  void Run();
  void TakeTurn();
  void AfterTurnWithoutMemory();
  void Arm();
  void Disarm();
  void HandOver();
  void GiveUp();
  void LeaveSession();
  void Unpark();
  bool IsOfAGap(const Record& record) const;
  void EndGap();
  void MarkGap(proto::GapReason reason, std::string detail);
  void CompleteWindow(uint64_t patience_ns);
  void Flush();
  void DrainCompleted();
  void DrainBuffer(const BufferPool::Buffer& buffer);
  TimeBounds PossibleTimes() const;
  void NoteImpossibleTimes();
  void NoteWrongGraphIds();
  void NoteStaticCupti();
  void WatchForRecords();
  void NoteMissingCallbacks();
  void CountDiscarded(const BufferPool::Buffer& buffer);
  void EmitRecord(const Record& record);
  void KeepNewest(const Record& record);
  bool IsOutsideWindow(const Record& record) const;
  [[nodiscard]] bool CountKernel(const Record& record);
  void DeclareHeld();
  void CheckCorrelation();

  LoadedApi loaded_;
  // kUnknown until the collector has said it; another CUPTI needs no trial.
  std::atomic<proto::TrialOutcome> trial_{proto::TrialOutcome::kAlive};
  std::atomic<bool> may_call_{true}, trial_noted_{false};
  CallTable calls_;
  BufferPool buffers_;
  std::optional<Session> session_;
  std::optional<RecordReader> records_;
  ThreadState* writer_ = nullptr;
  uint64_t began_realtime_ns_ = 0, began_ns_ = 0;  // CLOCK_REALTIME, CLOCK_MONOTONIC
  uint64_t flush_every_ns_ = 0, flush_at_ns_ = 0;
  bool impossible_times_noted_ = false, graph_ids_noted_ = false;
  bool static_cupti_noted_ = false;
  uint64_t modules_searched_ = 0;  // ModuleLoadCount
  // Since when no kernel's record has come, what had come and been launched by then.
  uint64_t silent_since_ns_ = 0, silent_kernels_ = 0, silent_launches_ = 0;
  bool silence_noted_ = false;
  bool missing_callbacks_noted_ = false;
  proto::Level stack_level_ = proto::Level::kUnknown;
  uint64_t gap_since_ticks_ = 0;  // 0: capturing
  proto::GapReason gap_reason_ = proto::GapReason::kLevel;
  std::string gap_detail_;
  static constexpr uint64_t kNever = UINT64_MAX;
  std::atomic<uint64_t> retry_at_ns_{0};
  // Closing a window: records of later calls are not ours any more.
  bool closing_ = false;
  uint32_t window_last_correlation_ = 0;
  uint32_t window_last_launch_ = 0;
  uint32_t parked_after_ = 0;  // the last id of the window that ended so
  bool window_last_launch_seen_ = false;
  uint32_t newest_kernel_ = 0;  // the highest correlation id of a launch that has a record
  uint64_t window_records_ = 0;

  OwnThread thread_;
  std::atomic<bool> thread_runs_{false};
  std::atomic<bool> armed_{false};
  std::atomic<bool> parked_{
      false};  // since a window's end; not while the program's client has CUPTI
  std::atomic<bool> wants_correlation_{false};
  std::atomic<proto::Level> wanted_{proto::Level::kDormant};
  std::atomic<proto::GapReason> wanted_because_{proto::GapReason::kLevel};
  std::atomic<const char*> client_wants_{nullptr};  // the call that asked
  std::atomic<uint32_t> client_served_{0};
  // That a launch was waiting for, delivered or counted as lost; with a bit once the process ends
  // without the rest.
  static constexpr uint64_t kGaveUp = uint64_t{1} << 63;
  std::atomic<uint64_t> kernels_{0};
  std::atomic<bool> finish_{false}, paused_{false};
  std::atomic<uint32_t> finished_{0};
  std::atomic<uint64_t> cpu_ns_{0};
  uint64_t ended_cpu_ns_ = 0;  // of threads before a pause
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> errors_{0};
  std::atomic<uint64_t> names_missing_{0};
};

}  // namespace ranktap::agent::cupti
