"""The paired estimator of gpu-check with planted costs, on noise that is made up and on the stand-in's own clock."""
import os
import pathlib
import random
import subprocess
import sys
import unittest

import harness

GPU = harness.ROOT / 'tests/gpu'
sys.path[:0] = [str(GPU), str(GPU / 'programs')]
from check import paired  # noqa: E402

REPEATS = 100
STEPS = 2
HELD_NS = 5_000_000


class Noise:
    """Factors as of a machine that slowly warms up, with an interruption now and then."""

    def __init__(self, seed, spread):
        self.random, self.spread, self.level = random.Random(seed), spread, 1.0

    def factor(self):
        self.level *= 1 + self.random.gauss(0.0002, 0.0005)
        late = self.random.expovariate(30) if self.random.random() < 0.02 else 0
        return self.level * (1 + self.random.gauss(0, self.spread)) * (1 + late)


def made_up(seed, planted):
    noise, pairs = Noise(seed, 0.004), []
    while not paired.enough(pairs):
        taken = {on: noise.factor() * (1 + planted * on) for on in paired.order(len(pairs))}
        pairs.append((taken[False], taken[True]))
    return paired.estimate(pairs)


def queued_pairs(device, noise, planted, first):
    """So many pairs in one queue, behind a kernel that holds it until all is there: no wait of ours is in a time."""
    while True:
        device.set_kernel_ns(HELD_NS)
        device.launch()
        released = device.event()
        blocks = queue_blocks(device, noise, planted, first)
        in_time = not device.has_passed(released)
        device.synchronize()
        times = [(on, device.elapsed_ns(begin, end)) for on, begin, end in blocks]
        if in_time:
            return [tuple(taken for _, taken in sorted(times[at:at + 2])) for at in range(0, len(times), 2)]


def queue_blocks(device, noise, planted, first):
    blocks = []
    for turn in range(first, first + paired.LEAST_PAIRS):
        for on in paired.order(turn):
            device.set_kernel_ns(10_000 * noise.factor() * (1 + planted * on))
            begin = device.event()
            for _ in range(STEPS):
                device.step()
            blocks.append((on, begin, device.event()))
    return blocks


def on_stand_in(device, seed, planted):
    noise, pairs = Noise(seed, 0.002), []
    while not paired.enough(pairs):
        pairs += queued_pairs(device, noise, planted, len(pairs))
    return paired.estimate(pairs)


class PlantedCostTest(unittest.TestCase):
    def _check(self, estimate, seed):
        print(f'seeds {seed} to {seed + REPEATS - 1}', flush=True)
        planted = [estimate(seed + number, 0.01) for number in range(REPEATS)]
        nothing = [estimate(seed + number, 0.0) for number in range(REPEATS)]
        found = sum(abs(one['percent'] - 1) <= one['interval95'] for one in planted)
        wrong = sum(paired.is_a_cost(one) for one in nothing)
        print(f'1 % lies in the interval in {found} of {REPEATS}; 0 % is called a cost in {wrong}')
        self.assertGreaterEqual(found, 90)
        self.assertLessEqual(wrong, 5)
        self.assertGreaterEqual(sum(paired.is_a_cost(one) for one in planted), 90, 'the intervals are narrow, too')

    def test_a_planted_cost_is_found_and_none_is_invented_where_the_noise_is_made_up(self):
        self._check(made_up, 0)

    def test_a_planted_cost_is_found_and_none_is_invented_on_the_stand_ins_clock(self):
        if 'STAND_IN_CHILD' in os.environ:
            from stand_in_device import StandIn
            device = StandIn()
            self._check(lambda seed, planted: on_stand_in(device, seed, planted), 0)
            return
        # The stand-in must be on the library path before the process begins.
        done = subprocess.run([sys.executable, '-m', 'unittest', self.id()], cwd=pathlib.Path(__file__).parent,
                              capture_output=True, text=True, check=False,
                              env={**os.environ, 'LD_LIBRARY_PATH': str(harness.BUILD / 'fakes'), 'STAND_IN_CHILD': '1'})
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class GoalTest(unittest.TestCase):
    def test_a_goal_is_met_or_missed_only_where_the_whole_interval_is_on_one_side(self):
        def one(percent, half):
            return {'percent': percent, 'interval95': half, 'pairs': 20}
        self.assertIs(paired.at_most(one(0.5, 0.2), 0.7), True)
        self.assertIs(paired.at_most(one(0.5, 0.3), 0.7), None)
        self.assertIs(paired.at_most(one(1.1, 0.3), 0.7), False)

    def test_pairs_are_made_until_the_interval_is_narrow_or_there_are_200(self):
        self.assertFalse(paired.enough([(1.0, 1.0)] * 19))
        self.assertTrue(paired.enough([(1.0, 1.0)] * 20))
        wild = [(1.0, 1.0), (1.0, 2.0)] * 100
        self.assertFalse(paired.enough(wild[:-1]))
        self.assertTrue(paired.enough(wild))

    def test_what_drifts_falls_on_both_ways_alike(self):
        pairs = []
        for turn in range(20):
            taken = {on: 100.0 + 2 * turn + second for second, on in enumerate(paired.order(turn))}
            pairs.append((taken[False], taken[True]))
        self.assertAlmostEqual(paired.estimate(pairs)['percent'], 0, places=9)


if __name__ == '__main__':
    unittest.main()
