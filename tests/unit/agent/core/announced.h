// What a test's code has announced.
#pragma once

#include <memory>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/announcements.h"

namespace ranktap::agent {

// Since the last call, the oldest first.
inline std::vector<Announcement> TakeAnnounced() {
  std::vector<Announcement> all;
  for (Announcement* next = TakeAnnouncements(); next != nullptr;) {
    const std::unique_ptr<Announcement> taken(next);
    next = taken->next;
    all.push_back(std::move(*taken));
  }
  return all;
}

// The notes among them; the rest is gone.
inline std::vector<std::string> TakeNotes() {
  constexpr uint32_t kNote = 14;  // of v1.Hello
  std::vector<std::string> notes;
  for (const Announcement& each : TakeAnnounced()) {
    if (each.type != proto::FrameType::kAmend) continue;
    protozero::pbf_reader hello(each.payload);
    while (hello.next(kNote)) notes.push_back(hello.get_string());
  }
  return notes;
}

}  // namespace ranktap::agent
