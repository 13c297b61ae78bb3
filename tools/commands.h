// The commands of `nestor-checkpoint`. Each prints to `out` and returns OK, a misuse (tools/arguments.h) or
// why it failed.
#ifndef NESTOR_TOOLS_COMMANDS_H_
#define NESTOR_TOOLS_COMMANDS_H_

#include <ostream>

#include "absl/status/status.h"
#include "tools/arguments.h"

namespace nestor {

// inspect DIR [--json]
absl::Status Inspect(const Arguments& arguments, std::ostream& out);

// verify DIR... [--tolerance NUMBER]: FAILED_PRECONDITION where a folder is beyond the tolerance.
absl::Status Verify(const Arguments& arguments, std::ostream& out);

// slice DIR --submodel NAME --output DIR
absl::Status Slice(const Arguments& arguments, std::ostream& out);

// tokenize TOKENIZER_JSON (TEXT | --golden FILE): FAILED_PRECONDITION where a golden line differs.
absl::Status Tokenize(const Arguments& arguments, std::ostream& out);

}  // namespace nestor

#endif  // NESTOR_TOOLS_COMMANDS_H_
