// Early return on absl::Status errors. Debian 12's Abseil predates Abseil's own status macros.
#ifndef NESTOR_ENGINE_BASE_STATUS_MACROS_H_
#define NESTOR_ENGINE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define NESTOR_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status nestor_status = (expression); !nestor_status.ok()) { \
      return nestor_status;                                               \
    }                                                                     \
  } while (false)

#define NESTOR_MACRO_JOIN_INNER(a, b) a##b
#define NESTOR_MACRO_JOIN(a, b) NESTOR_MACRO_JOIN_INNER(a, b)

// NESTOR_ASSIGN_OR_RETURN(auto value, MakeValue());
#define NESTOR_ASSIGN_OR_RETURN(lhs, expression) \
  NESTOR_ASSIGN_OR_RETURN_INNER(NESTOR_MACRO_JOIN(nestor_statusor_, __LINE__), lhs, expression)

#define NESTOR_ASSIGN_OR_RETURN_INNER(statusor, lhs, expression) \
  auto statusor = (expression);                                  \
  if (!statusor.ok()) return std::move(statusor).status();       \
  lhs = *std::move(statusor)

#endif  // NESTOR_ENGINE_BASE_STATUS_MACROS_H_
