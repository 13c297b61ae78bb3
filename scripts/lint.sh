#!/usr/bin/env bash
# Checks every source file of ours: clang-format, buf, shellcheck, clang-tidy. All checks run; the exit status is 1 if
# any of them found something. clang-tidy needs a configured build (build/release), since it reads the compile commands.
#
#   scripts/lint.sh                 check all files
#   scripts/lint.sh --since COMMIT  clang-tidy only on files that differ from COMMIT; the rest is quick anyway
#   scripts/lint.sh --fix           rewrite the layout of C++ and proto files instead of checking
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# Tracked files and new ones that git does not ignore.
sources() { git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

mapfile -t cpp_files < <(sources '*.cc' '*.h')
mapfile -t shell_files < <(sources '*.sh' '.ci/run')
status=0
check() {
  echo "lint: $1"
  shift
  "$@" || status=1
}

case "${1:-}" in
  --fix)
    clang-format -i "${cpp_files[@]}"
    exec .venv/bin/buf format --write proto
    ;;
  --since) mapfile -t tidy_files < <(git diff --name-only --diff-filter=d "${2:?--since needs a commit}" -- '*.cc') ;;
  "") mapfile -t tidy_files < <(sources '*.cc') ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

check "clang-format, ${#cpp_files[@]} files" clang-format --dry-run -Werror "${cpp_files[@]}"
check "shellcheck, ${#shell_files[@]} files" shellcheck "${shell_files[@]}"
check "buf lint" .venv/bin/buf lint proto
check "buf format" .venv/bin/buf format --diff --exit-code proto
if [ ${#tidy_files[@]} -gt 0 ]; then
  check "clang-tidy, ${#tidy_files[@]} files" run-clang-tidy -quiet -p build/release "${tidy_files[@]}"
fi
[ $status = 0 ] && echo "lint: nothing found"
exit $status
