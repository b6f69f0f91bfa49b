// Two tables of open addressing. A full one is emptied: what is still alive is told again.
// Runs on: the sampler.  May not: see stack_numbers.h.
#include "agent/sources/samples/stack_numbers.h"

#include <sys/mman.h>

namespace ranktap::agent::samples {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15;
  return hash ^ hash >> 29;
}

}  // namespace

bool StackNumbers::Map() {
  if (tables_ != nullptr) return true;
  void* const memory = mmap(nullptr, sizeof(Tables), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  tables_ = static_cast<Tables*>(memory);
  return true;
}

void StackNumbers::Forget() {
  // Zeros again, and given back.
  madvise(tables_, sizeof(Tables), MADV_DONTNEED);
  codes_ = places_ = 0;
}

uint32_t StackNumbers::NumberOf(std::span<const proto::PythonFrame> frames,
                                proto::PythonFrames& reader, SampleLines& lines, int32_t space) {
  if (codes_ + frames.size() > kMostCodes || places_ + frames.size() > kMostPlaces) Forget();
  uint32_t parent = 0;
  for (size_t i = frames.size(); i-- > 0;) {
    const uint32_t code = CodeNumber(frames[i].code, space, reader, lines);
    const uint32_t offset = frames[i].offset;
    uint64_t at = Mix(Mix(uint64_t{parent} << 32 | code, offset), 1) >> 16;
    while (true) {
      Place& place = tables_->places[at++ % kPlaceSlots];
      if (place.number == 0) {
        place = {
            .parent = parent, .code = code, .offset = offset, .number = ++last_place_, .told = 0};
        ++places_;
      } else if (place.parent != parent || place.code != code || place.offset != offset) {
        continue;
      }
      if (place.told != telling_) {
        place.told = telling_;
        lines.AddFrame(place.number, parent, code, LineOf(frames[i], reader));
      }
      parent = place.number;
      break;
    }
  }
  return parent;
}

uint32_t StackNumbers::CodeNumber(const proto::PythonCode& code, int32_t space,
                                  proto::PythonFrames& reader, SampleLines& lines) {
  uint64_t at = Mix(Mix(code.address, code.line_table), code.first_line) >> 16;
  while (true) {
    Code& slot = tables_->codes[at++ % kCodeSlots];
    const bool is_it = slot.number != 0 && slot.space == space && slot.code == code;
    if (slot.number != 0 && !is_it) continue;
    if (!is_it) {
      slot = {.code = code, .space = space, .number = ++last_code_, .told = 0};
      ++codes_;
    }
    if (slot.told != telling_) {
      slot.told = telling_;
      Tell(code, slot.number, reader, lines);
    }
    return slot.number;
  }
}

// Once for a place: the line table is read and gone through here, so that it need not be sent.
uint32_t StackNumbers::LineOf(const proto::PythonFrame& frame, proto::PythonFrames& reader) {
  if (!reader.ReadLineTable(frame.code, &text_.line_table)) return 0;
  return proto::PythonLine(reader.layout().minor, text_.line_table, frame.code.first_line,
                           frame.offset);
}

void StackNumbers::Tell(const proto::PythonCode& code, uint32_t number, proto::PythonFrames& reader,
                        SampleLines& lines) {
  if (!reader.ReadNames(code, &text_)) {
    text_.file.clear();
    text_.name.clear();
  }
  lines.AddCode(number, text_);
}

}  // namespace ranktap::agent::samples
