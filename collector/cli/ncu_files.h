// Counters that Nsight Compute took of another run of the program: --ncu.
#pragma once

#include <string>
#include <vector>

#include "collector/terminal/arguments.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

void AddNcuOption(Arguments* app, std::vector<std::string>* files);

// Joins each file to the rank that its name ends with ("ncu-rank3.csv"), else to the first rank of
// the run. What it could not join goes to `notes`. False, after a complaint: a file cannot be read.
bool TakeNcu(const std::vector<std::string>& files, const Run& run,
             std::vector<std::string>* notes);

}  // namespace ranktap::collector
