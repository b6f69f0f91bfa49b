"""The stand-in for CUDA as a device for blocks.py: kernels whose length the program itself sets, and its events."""
import ctypes

PTX = b'.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry timed()\n{\n  ret;\n}\n'
KERNELS_PER_STEP = 4


class Marker(ctypes.Structure):
    _fields_ = [('version', ctypes.c_uint32), ('change', ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p))]


class StandIn:
    def __init__(self, kernel_ns=10_000):
        self.cuda = ctypes.CDLL('libcuda.so.1')
        self.marker = Marker.in_dll(self.cuda, 'ranktap_standin_marker')
        self.kernel, self.stream, context, module = (ctypes.c_void_p() for _ in range(4))
        self.set_kernel_ns(kernel_ns)
        self._call('cuInit', 0)
        self._call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
        self._call('cuCtxSetCurrent', context)
        self._call('cuModuleLoadData', ctypes.byref(module), PTX)
        self._call('cuModuleGetFunction', ctypes.byref(self.kernel), module, b'timed')
        self._call('cuStreamCreate', ctypes.byref(self.stream), 1)

    def _call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f'{name}: error {status}')

    def set_kernel_ns(self, value):
        self.marker.change(b'KERNEL_NS', str(round(value)).encode())

    def launch(self):
        self._call('cuLaunchKernel', self.kernel, 1, 1, 1, 1, 1, 1, 0, self.stream, None, None)

    def step(self):
        for _ in range(KERNELS_PER_STEP):
            self.launch()

    def event(self):
        event = ctypes.c_void_p()
        self._call('cuEventCreate', ctypes.byref(event), 0)
        self._call('cuEventRecord', event, self.stream)
        return event

    def has_passed(self, event):
        """Takes the event away."""
        status = self.cuda.cuEventQuery(event)
        self._call('cuEventDestroy_v2', event)
        return status == 0

    def elapsed_ns(self, first, last):
        milliseconds = ctypes.c_float()
        self._call('cuEventElapsedTime', ctypes.byref(milliseconds), first, last)
        for event in first, last:
            self._call('cuEventDestroy_v2', event)
        return milliseconds.value * 1e6

    def synchronize(self):
        self._call('cuStreamSynchronize', self.stream)
