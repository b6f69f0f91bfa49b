#include "collector/facts/flops/dtype_sizes.h"

namespace ranktap::collector {
namespace {

// c10/core/ScalarType.h: AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS and the like.
struct Dtype {
  std::string_view name, type;
  int64_t bytes;
};
constexpr Dtype kDtypes[] = {
    {"Byte", "unsigned char", 1},
    {"Char", "signed char", 1},
    {"Bool", "bool", 1},
    {"Short", "short int", 2},
    {"Int", "int", 4},
    {"Long", "long int", 8},
    {"UInt16", "short unsigned int", 2},
    {"UInt32", "unsigned int", 4},
    {"UInt64", "long unsigned int", 8},
    {"Half", "c10::Half", 2},
    {"BFloat16", "c10::BFloat16", 2},
    {"Float", "float", 4},
    {"Double", "double", 8},
    {"ComplexHalf", "c10::complex<c10::Half>", 4},
    {"ComplexFloat", "c10::complex<float>", 8},
    {"ComplexDouble", "c10::complex<double>", 16},
};

}  // namespace

int64_t BytesPerElement(std::string_view dtype) {
  for (const Dtype& known : kDtypes) {
    if (dtype == known.name || dtype == known.type) return known.bytes;
  }
  // Float8_e5m2, Float8_e4m3fn, Float8_e4m3fnuz and so on.
  const bool is_qualified = dtype.starts_with("c10::");
  return dtype.substr(is_qualified ? 5 : 0).starts_with("Float8_") ? 1 : 0;
}

}  // namespace ranktap::collector
