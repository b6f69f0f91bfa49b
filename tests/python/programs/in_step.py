"""A loop in step with the clock: of each 10 ms, 7 at one line and 3 at another. Prints what line_shares.py does."""
import json
import sys
import time

spent = {}
began = time.perf_counter()


def sleep_until(moment):
    before = time.perf_counter()
    time.sleep(max(0.0, began + moment - before))
    line = sys._getframe(1).f_lineno
    spent[line] = spent.get(line, 0.0) + time.perf_counter() - before


for turn in range(int(100 * float(sys.argv[1]))):
    sleep_until(turn * 0.010 + 0.007)
    sleep_until(turn * 0.010 + 0.010)
print(json.dumps({'file': __file__, 'seconds': spent}))
