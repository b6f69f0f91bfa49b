# Sourced in the packed tree before scripts/gpu-check: where CUDA's libraries lie, and where results go. A machine may
# have them in a toolkit or with Python's packages alone, and a toolkit may lack CUPTI.
export PYTHONUNBUFFERED=1
RESULTS=${RESULTS:-${OUT:-$PWD/results}}
mkdir -p "$RESULTS"
toolkit=${CUDA_HOME:-/usr/local/cuda}
site=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
# The C++ programs look into /usr/local/cuda by themselves; a library path for nothing would reach PyTorch too.
if [ ! -e /usr/local/cuda/lib64/libcudart.so.13 ] && [ -z "${LD_LIBRARY_PATH:-}" ]; then
  for folder in "$toolkit/lib64" "$site/cu13/lib" "$site/cuda_runtime/lib"; do
    if [ -e "$folder/libcudart.so.13" ]; then export LD_LIBRARY_PATH="$folder"; break; fi
  done
fi
# PyTorch's own copy first: two copies in one process refuse each other.
if [ -z "${RANKTAP_CUPTI:-}" ]; then
  for folder in "$site/cu13/lib" "$site/cuda_cupti/lib" "$toolkit/extras/CUPTI/lib64" "$toolkit/lib64"; do
    if [ -e "$folder/libcupti.so.13" ]; then export RANKTAP_CUPTI="$folder/libcupti.so.13"; break; fi
  done
fi
echo "results in $RESULTS; CUPTI ${RANKTAP_CUPTI:-not found}; library path ${LD_LIBRARY_PATH:-as it was}"
