// Where a rank stands, in words, from its stacks. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/hang/rank_look.h"
#include "collector/hang/rank_processes.h"

namespace ranktap::collector {

// Where only PyTorch's native code tells that a thread stands in one.
inline constexpr std::string_view kUnnamedCollective = "a collective";
// The collective that the main thread stands in: "AllReduce". Empty: none.
std::string CollectiveOf(const RankLook& look);
// Nothing is known of a collective, and its main thread is in a call of CUDA's for 2 s or more.
bool WaitsForDevice(const RankLook& look);
// Where it waits: "AllReduce (train.py:31)", or "cudaStreamSynchronize at train.py:31".
std::string CallAt(const RankLook& look);
// "in AllReduce (train.py:31)", or "for their devices (cudaStreamSynchronize at train.py:31)".
std::string WaitsIn(const RankLook& look, size_t ranks);

// "train.py:31", of the program's innermost frame; of a library's where there is none.
std::string ProgramPlaceOf(const ThreadStack& stack);
// "dataset.py:88 ← train.py:31": the innermost frame, then the program's.
std::string ChainOf(const ThreadStack& stack);
// "Its main thread sleeps at train.py:31", with the thread that holds the GIL and the worker that
// it waits for, where it does.
std::string DescribePlace(const RankLook& look);

// In PyTorch's DataLoader: a child that it waits for is a worker of that, whatever its name was.
bool IsInLoader(const ThreadStack& stack);
bool IsInDebugger(const RankLook& look);
bool ReadsTerminal(const RankLook& look);

// "rank 3", "ranks 0-2, 5"
std::string RankText(const std::vector<uint32_t>& ranks);
// "42 s", "2 min 5 s"
std::string DurationText(uint64_t ns);
// "exit status 1", "signal 9 (SIGKILL) of the kernel, which was short of memory"
std::string EndText(const ProcessEnd& end);
// The same, and the exception that it told: "exit status 1 (ValueError: no such label)".
std::string EndText(const EndedRank& ended);
// "its DataLoader worker 4711 ended 12 s before, by signal 9 (SIGKILL)"
std::string ChildEndText(const EndedChild& child, std::string_view before);
// "Its last stack, 0.4 s before it was seen to have ended, is at train.py:88". Empty: not known.
std::string LastPlaceText(const EndedRank& ended);

}  // namespace ranktap::collector
