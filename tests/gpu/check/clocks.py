"""Device time and host time over minutes: no kernel before its launch, and the clocks' drift."""
import os

from check.base import WORKLOADS, why
from check.basics import kernel_facts


def run(check):
    minutes = float(os.environ.get('GPU_CHECK_CLOCK_MINUTES', '0.05' if check.stand_in else '10'))
    seconds = min(minutes * 60, max(5, check.left_s() - 60))
    rate = 2000
    done, run_folder = check.traced([WORKLOADS / 'launches', str(int(rate * seconds)), str(rate)], '--quiet')
    if done.returncode != 0:
        check.note('clocks', False, why(done))
        return
    facts = kernel_facts(check, run_folder)
    check.note('clocks', facts['kernels'] > 0 and facts['early'] == 0 and facts['unjoined'] == 0,
               f'{facts["kernels"]} kernels in {seconds:.0f} s at {rate}/s, {facts["early"]} before their launch by the trace\'s '
               f'clocks, {facts["unjoined"]} without one', seconds=seconds, **{key: facts[key] for key in ('kernels', 'early')})
