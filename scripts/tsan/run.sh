#!/usr/bin/env bash
# Runs a command (CTest, or one test binary of build/tsan) so that ThreadSanitizer knows which libraries were built
# without it: gRPC and what it stands on. What they hand from one of their threads to another (calls, messages,
# statuses) is ordered inside them, where the sanitizer does not see it, so what they allocate, copy and free is not
# watched. All of our code is.
#
#   scripts/tsan/run.sh build/tsan/tests/engine_serve_test
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="$here/../../build/tsan"
suppressions="$build/suppressions.txt"
{
  cat "$here/suppressions.txt"
  ldd "$build/bin/nestor-server" | grep -oE 'lib(absl_[a-z0-9_]+|address_sorting|cares|gpr|grpc(\+\+)?(_reflection)?|protobuf|upb)\.so' |
    sort -u | sed 's/^/called_from_lib:/'
} >"$suppressions"
export TSAN_OPTIONS="suppressions=$suppressions halt_on_error=1 allocator_may_return_null=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
exec "$@"
