"""Starts CUDA, has the device do a little, and says what that took and left: one line of JSON. Needs no PyTorch."""
import contextlib
import ctypes
import json
import re
import time

cuda = ctypes.CDLL('libcuda.so.1')
# As a usual program has it: CUPTI is looked for beside it.
with contextlib.suppress(OSError):
    ctypes.CDLL('libcudart.so.13')


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        raise SystemExit(f'{name}: error {status}')


def peak_kib():
    with open('/proc/self/status') as status:
        return int(re.search(r'VmHWM:\s*(\d+)', status.read())[1])


def main():
    before = time.monotonic()
    call('cuInit', 0)
    initialized = time.monotonic() - before
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call('cuDeviceGet', ctypes.byref(device), 0)
    call('cuDevicePrimaryCtxRetain', ctypes.byref(context), device)
    call('cuCtxSetCurrent', context)
    memory, size = ctypes.c_uint64(), ctypes.c_size_t(1 << 20)
    call('cuMemAlloc_v2', ctypes.byref(memory), size)
    for _ in range(100):
        call('cuMemsetD8_v2', memory, ctypes.c_ubyte(1), size)
    call('cuCtxSynchronize')
    free, whole = ctypes.c_size_t(), ctypes.c_size_t()
    call('cuMemGetInfo_v2', ctypes.byref(free), ctypes.byref(whole))
    print(json.dumps({'init_s': initialized, 'used_bytes': whole.value - free.value, 'peak_kib': peak_kib(),
                      'ends_at': time.monotonic()}), flush=True)


main()
