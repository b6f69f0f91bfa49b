"""What PyTorch attains of a host's roofs: a GEMM of 2048^3 and a triad of 1 GiB, fp32, medians of five, as JSON.

By CPU time of the process, as `ranktap calibrate` measures: who else runs here takes nothing of that.
"""
import json
import os
import statistics
import time

# A thread that waits for a busy core's other half would spin, and its CPU time would count as work.
os.environ |= {'OMP_WAIT_POLICY': 'passive', 'GOMP_SPINCOUNT': '0'}

import torch  # noqa: E402

THREADS = len(os.sched_getaffinity(0))


def rate(amount, call):
    """Amounts a second of all threads."""
    call()
    rates = []
    for _ in range(5):
        begin = time.process_time()
        call()
        rates.append(amount * THREADS / (time.process_time() - begin))
    return statistics.median(rates)


torch.set_num_threads(THREADS)
left, right = torch.rand(2048, 2048), torch.rand(2048, 2048)
product = torch.empty(2048, 2048)
elements = 2**30 // 12
a, b, c = (torch.ones(elements) for _ in range(3))
print(json.dumps({'gemm': rate(2 * 2048**3, lambda: torch.mm(left, right, out=product)),
                  'triad': rate(12 * elements, lambda: torch.add(b, c, alpha=0.5, out=a))}))
