"""Trains while the job is asleep, wakes it, and puts it to sleep again: `asleep.py RANKTAP RUN`. Prints what
stands in Module.__call__'s place meanwhile, and the steps between which the window was."""
import ctypes
import pathlib
import subprocess
import sys

import torch
from torch import nn
from torch.profiler import record_function

MOST_STEPS = 200_000


class Training:
    def __init__(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self._model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self._data = torch.ones(2, 4)
        self.steps = 0

    def step(self):
        self._model(self._data).sum().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.steps += 1

    def step_until(self, condition):
        while not condition() and self.steps < MOST_STEPS:
            self.step()


def is_asleep():
    """PyTorch's own functions are in their places, that of the backward pass too, which 2.3 has first."""
    engine = vars(torch.autograd).get('_engine_run_backward')
    return (nn.Module.__dict__['__call__'] is nn.Module._wrapped_call_impl and
            engine is getattr(torch.autograd.graph, '_engine_run_backward', None))


def observes_operators():
    """Whether PyTorch has a callback at operators. at::getStepCallbacksUnlessEmpty(RecordScope::FUNCTION) returns an
    optional in memory of the caller's: of an empty one it writes the flag, PyTorch 2.1 a byte more."""
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / 'lib/libtorch_cpu.so'))
    result = ctypes.create_string_buffer(b'\xaa' * 1024)
    library['_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE'](result, 0)
    return sum(byte != 0xaa for byte in result.raw[:1024]) > 8


def calls_of_ours(step):
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_filename) if event == 'call' else None)
    step()
    sys.setprofile(None)
    return sum(name.startswith('<ranktap/') for name in names)


def main():
    with record_function('before the first forward'):
        train(*sys.argv[1:3])


def train(ranktap, run):
    training = Training()
    training.step_until(lambda: training.steps >= 3)
    print('asleep', is_asleep(), observes_operators(), calls_of_ours(training.step))
    subprocess.run([ranktap, 'start', run], check=True, stdout=subprocess.DEVNULL)
    first = training.steps
    assert not observes_operators()
    training.step_until(lambda: not is_asleep())
    print('awake', not is_asleep())
    observed = observes_operators()
    for _ in range(5):
        training.step()
        observed = observed or observes_operators()
    assert observed  # the window's first step has operators, and the detector works
    last = training.steps
    subprocess.run([ranktap, 'stop', run], check=True, stdout=subprocess.DEVNULL)
    training.step_until(is_asleep)
    training.step()
    print('asleep', is_asleep(), observes_operators(), calls_of_ours(training.step))
    print('window', first, last)


if __name__ == '__main__':
    main()
