# shellcheck shell=bash disable=SC2034 # the variables are for the scripts that source this
# Shared by the scripts of this folder: progress lines, packages, NCCL, build. Sourced, not run.
# Exit codes of every script: 0 done, 1 it ran and something failed, 2 wrong usage, 3 the machine lacks something.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
BUILD="$ROOT/build"
STEP=0
STEPS=0

step() {
  STEP=$((STEP + 1))
  printf '\n[%d/%d] %s\n' "$STEP" "$STEPS" "$*"
}

note() { printf '      %s\n' "$*"; }

# stop CODE MESSAGE…: one line per argument, then the end.
stop() {
  local code="$1"
  shift
  printf '\n' >&2
  printf '%s\n' "$@" >&2
  exit "$code"
}

wrong_option() {
  local script="$1" option="$2"
  stop 2 "$script: the option \"$option\" is not known." "Try: $script --help"
}

# A command line prefix that makes it root: nothing as root, sudo where there is one; false where there is neither.
become_root() {
  if [ "$(id -u)" -eq 0 ]; then
    printf ''
  elif command -v sudo >/dev/null 2>&1; then
    printf 'sudo'
  else
    return 1
  fi
}

PACKAGES_BUILD=(g++ cmake make ninja-build binutils dpkg-dev python3 nlohmann-json3-dev libcli11-dev libfmt-dev
  libgtest-dev libgmock-dev libbenchmark-dev libibverbs-dev librdmacm-dev libisal-dev libarchive-dev)
PACKAGES_RUN=(iproute2 iputils-ping procps ethtool util-linux)
PACKAGES_TEST=(tshark tcpdump ibverbs-utils perftest)

# install_packages NAME…: those that are missing, through apt; silent where none is.
install_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1; then
    note "not a Debian or Ubuntu system: the packages are yours to install. Debian's names are:"
    note "$*"
    return
  fi
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  if [ "${#missing[@]}" -eq 0 ]; then
    note "everything is there"
    return
  fi
  local root
  if ! root="$(become_root)"; then
    stop 3 "These packages are missing: ${missing[*]}" \
      "Installing them needs root, and this is an ordinary user without sudo. As root:" \
      "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  note "installing ${missing[*]}"
  local log
  log="$(mktemp)"
  if ! { $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    stop 3 "apt-get could not install: ${missing[*]}" "Its whole output: $log"
  fi
  rm -f "$log"
}

# Stock NCCL of both versions, fetched once into the user's cache folder. Without it the parts that need no NCCL still
# build; CI and WEFT_REQUIRE_NCCL=1 make its absence an error.
prepare_nccl() {
  if "$ROOT/tests/rig/stock_nccl/fetch"; then
    return
  fi
  if [ "${WEFT_REQUIRE_NCCL:-0}" = 1 ] || [ "${CI:-}" = true ]; then
    stop 3 "Stock NCCL is required here and could not be had (see above)."
  fi
  note "going on without stock NCCL: what needs it is left out"
}

# build PRESET FOLDER [TARGET…]: configure once, then build what changed.
build() {
  local preset="$1" folder="$2"
  shift 2
  local generator=()
  if [ ! -f "$folder/CMakeCache.txt" ] && command -v ninja >/dev/null 2>&1; then
    generator=(-G Ninja)
  fi
  (cd "$ROOT" && cmake --preset "$preset" "${generator[@]}" >"$ROOT/.configure-$preset.log" 2>&1) || {
    tail -n 30 "$ROOT/.configure-$preset.log" >&2
    stop 1 "cmake could not configure the preset \"$preset\"; whole output: $ROOT/.configure-$preset.log"
  }
  grep -A 3 'CMake Warning' "$ROOT/.configure-$preset.log" || :
  local targets=()
  [ "$#" -gt 0 ] && targets=(--target "$@")
  cmake --build "$folder" --parallel "$(nproc)" "${targets[@]}"
}
