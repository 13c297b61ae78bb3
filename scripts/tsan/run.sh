#!/usr/bin/env bash
# Runs a command (CTest, or one test binary of build/tsan) so that ThreadSanitizer understands the libraries that are
# built without it.
#
#   scripts/tsan/run.sh build/tsan/tests/engine_serve_test
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
library="$here/../../build/tsan/libabsl_mutex_tsan.so"

if [ "$here/absl_mutex.cc" -nt "$library" ]; then
  mkdir -p "$(dirname "$library")"
  g++ -std=c++20 -O2 -shared -fPIC -o "$library" "$here/absl_mutex.cc"
fi
export TSAN_OPTIONS="suppressions=$here/suppressions.txt halt_on_error=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
LD_PRELOAD="$(realpath "$library")" exec "$@"
