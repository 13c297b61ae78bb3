#!/usr/bin/env bash
# Installs what the build, the tests and `make run` need and is missing: Debian packages, and a Python environment in
# .venv. Safe to run again at any time; when nothing is missing it takes a fraction of a second and changes nothing.
#
#   scripts/setup.sh          what `make run` and `make test` need
#   scripts/setup.sh lint     that, and the tools of `make lint` and `make format`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One package a line: name, then why Nestor needs it.
build_packages="
g++                     the C++20 compiler
make                    runs the targets of the Makefile
cmake                   configures the build (3.25 or newer)
ninja-build             runs the build
ccache                  makes a rebuild after switching branches cheap
mold                    links the binaries in a second
pkg-config              finds PCRE2
libgrpc++-dev           gRPC: server, client, health service, reflection
protobuf-compiler       protoc: C++ code from proto/
protobuf-compiler-grpc  the gRPC plugin of protoc
libprotobuf-dev         the runtime of the generated code
libabsl-dev             Abseil: Status, strings, time, synchronization
libspdlog-dev           logging of the server
libboost-dev            Boost.Asio, headers only: signals and timers of the server
libpcre2-dev            PCRE2 with Unicode classes: the split regex of the tokenizer
libboost-program-options-dev  Boost.Program_options: flags of the binaries
nlohmann-json3-dev      reads config.json, elastic.json, tokenizer.json
libgtest-dev            GoogleTest
libgmock-dev            the matchers of GoogleTest
python3                 runs the scripts and the end-to-end test
python3-venv            creates .venv
"
lint_packages="
clang-format            layout of the C++ sources
clang-tidy              static checks of the C++ sources; brings run-clang-tidy
shellcheck              static checks of the shell scripts
"

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "setup: cannot run '$*': not root and there is no sudo." >&2
    echo "setup: run scripts/setup.sh as root once, or install the packages named above by hand." >&2
    exit 1
  fi
}

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

install_packages() {
  local wanted="$1" missing=() name why
  while read -r name why; do
    [ -n "$name" ] || continue
    is_installed "$name" && continue
    [ ${#missing[@]} -gt 0 ] || echo "setup: installing Debian packages that are missing:"
    printf 'setup:   %-30s%s\n' "$name" "$why"
    missing+=("$name")
  done <<<"$wanted"
  [ ${#missing[@]} -gt 0 ] || return 0
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    -o Dpkg::Use-Pty=0 >/dev/null
}

check_cmake() {
  local version
  version="$(cmake --version | sed -n '1s/.* //p')"
  if ! printf '3.25\n%s\n' "$version" | sort --version-sort --check=quiet; then
    echo "setup: CMake 3.25 or newer is needed, found $version ($(command -v cmake))." >&2
    exit 1
  fi
}

# Debian's own Python is used even where another one comes first on the PATH: python3-venv belongs to it.
# .venv/requirements.txt is the list that .venv was made from; it is written last, so that a broken attempt is repeated.
install_python_packages() {
  local wanted=scripts/requirements.txt have=.venv/requirements.txt
  cmp --silent "$wanted" "$have" && .venv/bin/python -c '' 2>/dev/null && return 0
  echo "setup: installing Python packages into .venv:"
  sed -nE 's/^([^# ]+) +# (.*)$/\1 \2/p' "$wanted" | while read -r name why; do
    printf 'setup:   %-38s%s\n' "$name" "$why"
  done
  rm -rf .venv
  /usr/bin/python3 -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 --requirement "$wanted"
  cp "$wanted" "$have"
}

if ! command -v apt-get >/dev/null; then
  echo "setup: this script knows Debian's apt-get only; install by hand:" >&2
  echo "$build_packages" >&2
  exit 1
fi
case "${1:-build}" in
  build) install_packages "$build_packages" ;;
  lint) install_packages "$build_packages$lint_packages" ;;
  *)
    echo "usage: scripts/setup.sh [lint]" >&2
    exit 2
    ;;
esac
check_cmake
install_python_packages
