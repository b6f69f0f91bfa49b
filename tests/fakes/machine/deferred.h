// Effects that must wait for their moment: host functions, and the copies behind them. One thread
// of the stand-in, started by the first host function, runs them in the order of their times; while
// any is outstanding, later copies queue up behind it, so that bytes move in stream order.
#pragma once

#include <cstdint>
#include <functional>

namespace ranktap::standin {

// `effect` runs on the worker at `device_ns`, or later when an earlier one is still running.
void Defer(uint64_t device_ns, std::function<void()> effect);
bool AnyDeferred();
// Returns when every effect due at or before the moment has run. Not from within an effect.
void WaitForDeferred(uint64_t device_ns);

}  // namespace ranktap::standin
