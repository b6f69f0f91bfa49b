// Long output on a terminal goes through $PAGER, else `less -FRX`; in a pipe or file it does not.
#pragma once

namespace ranktap::collector {

// From its start to its end standard output is the pager's input, where standard output is a
// terminal and neither --quiet nor PAGER=cat says otherwise. One at a time. The end waits for the
// person to leave the pager.
class Pager {
 public:
  Pager();
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

 private:
  int terminal_ = -1;
  int process_ = -1;
};

// Columns of what standard output ends up on, as OutputWidth().
unsigned long ScreenWidth();

}  // namespace ranktap::collector
