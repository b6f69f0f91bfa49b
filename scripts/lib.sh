# What the scripts share; sourced, never run.

RANKTAP_CACHE="${RANKTAP_CACHE:-$HOME/.cache/ranktap}"
RANKTAP_BUILD="${RANKTAP_BUILD:-build/release}"
if [ -z "${RANKTAP_CUDA_HOME:-}" ]; then
  RANKTAP_CUDA_HOME=/usr/local/cuda
  [ -x "$RANKTAP_CUDA_HOME/bin/nvcc" ] || RANKTAP_CUDA_HOME="$RANKTAP_CACHE/cuda-13.0"
fi
export RANKTAP_CACHE RANKTAP_BUILD RANKTAP_CUDA_HOME

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { say "$*"; exit 1; }

# Configures and builds a preset; on failure shows what the build said.
build_preset() {
  local preset="$1" log
  shift
  log="$(mktemp)"
  if ! { cmake --preset "$preset" -DRANKTAP_CUDA_HOME="$RANKTAP_CUDA_HOME" &&
         cmake --build --preset "$preset" "$@"; } >"$log" 2>&1; then
    tail -60 "$log" >&2
    rm -f "$log"
    die "building preset $preset failed"
  fi
  rm -f "$log"
}

# True where an NVIDIA driver answers.
have_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
