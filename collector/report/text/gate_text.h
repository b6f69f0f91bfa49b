// The gate's answer for a forge: a comment in Markdown, a test report in JUnit's XML.
#pragma once

#include <string>

#include "collector/report/gate/gate.h"

namespace ranktap::collector {

std::string FormatGateMarkdown(const GateResult& gate);
// As the schema of Jenkins' xUnit plugin has it: a regression is a failure, what the gate cannot
// tell is an error.
std::string FormatGateJUnit(const GateResult& gate);

}  // namespace ranktap::collector
