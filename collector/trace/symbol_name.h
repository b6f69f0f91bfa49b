// Kernel names as people write them.
#pragma once

#include <string>
#include <string_view>

namespace ranktap::collector {

// The demangled name (0.8 us each: callers do it once per name, not per event); a name that is not
// mangled stays as it is, an empty one becomes "(name missing)".
std::string ReadableKernelName(std::string_view mangled);

// The same without return type and parameters, for tables: "gemm<float>".
std::string ShortKernelName(std::string_view readable);

// Its own name alone, as nsys' base names: without return type, namespaces, template arguments and
// parameters. "vectorized" of "void at::native::vectorized<4, float>(int)".
std::string BaseKernelName(std::string_view readable);

// For a sentence: "elementwise_kernel<128, 4, BinaryFunctor<BFloat16, MulFunctor<float>>>", the
// short name without namespaces and without parameters of functions around a lambda.
std::string TellingKernelName(std::string_view readable);

// True of a name with signs that no mangled name has.
bool IsDemangled(std::string_view recorded);

}  // namespace ranktap::collector
