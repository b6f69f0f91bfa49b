// The questions of docs/cupti.md, "Facts that a GPU must answer". Each is asked in a process of its
// own, in which CUDA is up and CUPTI has not been used.
#pragma once

namespace ranktap::gpu {

// launches: how many a measurement takes; a graph has so many nodes.
void AskCost(int launches);
void AskCorrelation(int launches);
void AskLeftBytes(int launches);
void AskSettings(int launches);
void AskClockClientLater(int launches);
void AskClockOnce(int launches);
void AskClockEachSession(int launches);
void AskClockRealtimeFirst(int launches);
void AskWindows(int launches);
void AskSecondSubscriber(int launches);
void AskGraphWhole(int launches);
void AskGraphNodes(int launches);
void AskGraphSecondSession(int launches);
void AskGraphMode(int launches);
void AskOldGraphWhole(int launches);
void AskOldGraphNodes(int launches);
void AskDevicePool(int launches);
void AskLateBuffers(int launches);
void AskDriverLaunches(int launches);
void AskSecondApi(int launches);

}  // namespace ranktap::gpu
