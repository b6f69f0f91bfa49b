// How large PyTorch's dtypes are.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::collector {

// Bytes of one element; 0: unknown. `dtype` is c10::ScalarType's name, as collectives have it
// ("BFloat16", "Long"), or the C++ type's, as operators' inputs have it ("c10::Half", "long int").
int64_t BytesPerElement(std::string_view dtype);

}  // namespace ranktap::collector
