// What is said of a hang: one sentence or a few for each finding, and what to try against it.
#pragma once

#include <string>

#include "collector/facts/hang/find_hang.h"

namespace ranktap::collector {

// "not entered", "other signature", ...
std::string_view NameOf(HangCause cause);

// "AllReduce #4711 (64 MiB, group dp_0)"
std::string CallName(const JobCalls& job, const JobCall& call);
std::string GroupName(const JobGroup& group);

// "rank 13", "ranks 3, 7 and 12"; of many the first, and how many more.
std::string RankNames(const std::vector<uint32_t>& ranks);

std::string DescribeHang(const JobCalls& job, const HangFinding& finding);
std::string HangAdvice(const HangFinding& finding);

}  // namespace ranktap::collector
