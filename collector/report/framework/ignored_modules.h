// get_model_profile(ignore_modules=…): modules of these types have no hooks of DeepSpeed's.
#pragma once

#include <string>
#include <vector>

#include "collector/report/framework/model_profile.h"

namespace ranktap::collector {

// `types`: as the model's tree names them, "Linear". What such a module computes itself counts for
// the nearest module around it that is not ignored, and nowhere where there is none, or where
// DeepSpeed counts a layer as a whole (RNN, LSTM, GRU). Its latency is its children's. The sentence
// that names a type of which the model has no module; nullopt: done.
std::optional<Failure> IgnoreModules(const std::vector<std::string>& types, ModelProfile* profile);

}  // namespace ranktap::collector
