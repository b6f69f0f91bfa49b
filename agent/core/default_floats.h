// The floating point environment of a new process, while one of ours runs.
// Runs on: any thread.  May not: be used in a hook in steady state: the two switches cost some 50
// ns.
#pragma once

#include <fenv.h>

namespace ranktap::agent {

// A program may trap inexact results, and our arithmetic rounds: its SIGFPE would end the program.
class DefaultFloats {
 public:
  DefaultFloats() {
    fegetenv(&theirs_);
    fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { fesetenv(&theirs_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  fenv_t theirs_;
};

}  // namespace ranktap::agent
