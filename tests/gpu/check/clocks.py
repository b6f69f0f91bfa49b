"""Device time and host time over minutes: no kernel before its launch, and the clocks' drift."""
import os

from check.base import why, workload
from check.joins import kernel_facts, sound, steady, text

# Their export is read as one JSON text: a million kernels were a gigabyte of it.
MOST_KERNELS = 120_000


def run(check):
    minutes = float(os.environ.get('GPU_CHECK_CLOCK_MINUTES', '0.05' if check.stand_in else '1'))
    seconds = min(minutes * 60, max(5, check.left_s() - 60))
    rate = int(min(2000, MOST_KERNELS / seconds))
    done, run_folder = check.traced([workload('launches'), str(int(rate * seconds)), str(rate)], '--quiet',
                                    limit_s=seconds + 60)
    if done.returncode != 0:
        check.note('clocks', False, why(done))
        return
    facts = kernel_facts(check, run_folder)
    check.note('clocks', sound(facts) and steady(facts), f'{seconds:.0f} s at {rate}/s: {text(facts)}', seconds=seconds, **facts)
