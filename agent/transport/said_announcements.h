// Announcements: those that are kept are said to each collector, the others once.
// Runs on: the sender thread; at exit the exiting thread.  May not: be used from two threads.
#pragma once

#include <span>
#include <utility>

#include "agent/core/announcements.h"
#include "agent/transport/frame_sink.h"
#include "proto/frame.h"

namespace ranktap::agent {

// A chain, and no list of its own: one that could not grow would lose what it was to hold.
class SaidAnnouncements {
 public:
  SaidAnnouncements() = default;
  ~SaidAnnouncements() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
  }
  SaidAnnouncements(const SaidAnnouncements&) = delete;
  SaidAnnouncements& operator=(const SaidAnnouncements&) = delete;

  // The next collector has heard nothing.
  void StartOver() { unsaid_ = &first_; }

  void SayNew(FrameSink& sink) {
    Announcement** end = unsaid_;
    while (*end != nullptr) end = &(*end)->next;
    *end = TakeAnnouncements();
    while (Announcement* const next = *unsaid_) {
      // These may be 16 MiB: the rest with the next round.
      if (next->type == proto::FrameType::kFlight && sink.IsBehind()) return;
      sink.Put({.type = next->type}, std::as_bytes(std::span(next->payload)));
      if (next->keep) {
        unsaid_ = &next->next;
      } else {
        *unsaid_ = next->next;
        delete next;
      }
    }
  }

 private:
  // First the announcements to say again to a later collector, then those not said yet.
  Announcement* first_ = nullptr;
  Announcement** unsaid_ = &first_;
};

}  // namespace ranktap::agent
