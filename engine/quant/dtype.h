// Element types of stored tensors and their exact widening to float32.
#ifndef NESTOR_ENGINE_QUANT_DTYPE_H_
#define NESTOR_ENGINE_QUANT_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nestor {

// The types a safetensors file may hold that this engine knows by name. Only F32, BF16 and F16 can be
// computed with; the others are recognised so that a quantised checkpoint is refused by name.
enum class DType { kF32, kBF16, kF16, kF8E4M3, kU8 };

// Safetensors spelling: "F32", "BF16", "F16", "F8_E4M3", "U8".
std::string_view DTypeName(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

int64_t ByteSize(DType dtype);
bool IsFloat(DType dtype);  // F32, BF16 or F16

// to[i] = float32(from[i]), exact for every float type. `dtype` must satisfy IsFloat.
void WidenToFloat(DType dtype, const std::byte* from, int64_t count, float* to);

}  // namespace nestor

#endif  // NESTOR_ENGINE_QUANT_DTYPE_H_
