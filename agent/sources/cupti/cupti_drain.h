// The drain thread: arms and disarms CUPTI as the level asks, turns completed buffers into events,
// asks for them once in a while, and gets the last ones out when the process ends.
// Runs on: a thread of its own; Prepare and StartThread on the thread inside cuInit or the sender.
// May not: wait on a user thread; force a flush but at a hand-over, after a refusal and at the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/core/agent_config.h"
#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_buffers.h"
#include "agent/sources/cupti/cupti_calls.h"
#include "agent/sources/cupti/cupti_client_turn.h"
#include "agent/sources/cupti/cupti_doubts.h"
#include "agent/sources/cupti/cupti_drain_cost.h"
#include "agent/sources/cupti/cupti_drain_thread.h"
#include "agent/sources/cupti/cupti_flush_cost.h"
#include "agent/sources/cupti/cupti_flush_schedule.h"
#include "agent/sources/cupti/cupti_gap.h"
#include "agent/sources/cupti/cupti_graph_mode.h"
#include "agent/sources/cupti/cupti_hardware_events.h"
#include "agent/sources/cupti/cupti_intake.h"
#include "agent/sources/cupti/cupti_session.h"
#include "agent/sources/cupti/cupti_trial.h"
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
  void ResumeAfterClient(uint64_t grace_ms);

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
  void HeedTrial();
  void LearnVersion();
  void Run();
  void TakeTurn();
  void ServeClient();
  void AfterTurnWithoutMemory();
  void Arm();
  void AfterRefusal(const std::string& failure);
  void Disarm();
  void HandOver();
  void GiveUp();
  void LeaveSession();
  void Unpark();
  void CompleteWindow(uint64_t patience_ns);
  void Flush();
  void FlushWhole();
  // Nothing of this session is to come any more.
  void EndGraphs();
  void DrainCompleted();
  void DeclareHeld();
  void CheckCorrelation();

  LoadedApi loaded_;
  Trial trial_;
  CallTable calls_;
  BufferPool buffers_;
  std::optional<Session> session_;
  Intake intake_{loaded_, session_, buffers_};
  DrainThread thread_;
  FlushSchedule flush_;
  FlushCost flush_cost_;
  Gap gap_{"cupti"};
  GraphMode graph_mode_;
  HardwareEvents hardware_events_;
  ClientTurn client_turn_;
  Doubts doubts_;
  DrainCost cost_;
  proto::Level stack_level_ = proto::Level::kUnknown;
  std::atomic<proto::Level> wanted_{proto::Level::kDormant};
  std::atomic<proto::GapReason> wanted_because_{proto::GapReason::kLevel};
  std::atomic<bool> armed_{false};
  // Since a window's end; not while the program's client has CUPTI.
  std::atomic<bool> parked_{false};
};

}  // namespace ranktap::agent::cupti
