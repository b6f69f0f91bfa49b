"""The cost of one way of running beside another, from pairs of blocks in one process: a ratio with its 95 % interval.

The order of a pair's blocks is AB, then BA, and so on: what drifts falls on both ways alike. Pairs are made until
the interval is narrow enough, or there are too many.
"""
import math

from check.base import t95

WANTED_POINTS = 0.2
LEAST_PAIRS, MOST_PAIRS = 20, 200


def order(turn):
    """Whether the cost is paid in the first block and in the second block of this pair."""
    return (False, True) if turn % 2 == 0 else (True, False)


def estimate(pairs):
    """Of [(time without, time with)], in percent of the time without; None for fewer than two pairs."""
    if len(pairs) < 2:
        return None
    without = sum(pair[0] for pair in pairs)
    ratio = sum(pair[1] for pair in pairs) / without
    left_over = sum((pair[1] - ratio * pair[0]) ** 2 for pair in pairs) / (len(pairs) - 1)
    half = t95(len(pairs) - 1) * math.sqrt(left_over * len(pairs)) / without
    return {'percent': 100 * (ratio - 1), 'interval95': 100 * half, 'pairs': len(pairs)}


def enough(pairs):
    if len(pairs) < LEAST_PAIRS:
        return False
    return len(pairs) >= MOST_PAIRS or estimate(pairs)['interval95'] <= WANTED_POINTS


def combined(*terms):
    """The sum of independent estimates, each times its factor: (factor, estimate)."""
    return {'percent': sum(factor * one['percent'] for factor, one in terms),
            'interval95': math.hypot(*(factor * one['interval95'] for factor, one in terms)),
            'pairs': min(one['pairs'] for _, one in terms)}


def at_most(one, goal):
    """True or False where the whole interval is on one side of the goal; None where the goal lies inside."""
    if one['percent'] + one['interval95'] <= goal:
        return True
    return False if one['percent'] - one['interval95'] > goal else None


def is_a_cost(one):
    return at_most(one, 0) is False


def text(one):
    return f'{one["percent"]:+.2f} % ± {one["interval95"]:.2f} ({one["pairs"]} pairs)'
