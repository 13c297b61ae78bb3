#!/usr/bin/env bash
# Runs a command (CTest, or one test binary of build/tsan) so that ThreadSanitizer knows which libraries were built
# without it.
#
#   scripts/tsan/run.sh build/tsan/tests/engine_serve_test
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export TSAN_OPTIONS="suppressions=$here/suppressions.txt halt_on_error=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
exec "$@"
