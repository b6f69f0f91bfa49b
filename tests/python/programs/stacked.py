"""Threads at known places, then a main thread that holds the interpreter's lock in C for good. Prints each thread's
frames as Python itself knows them: {thread: [[file, line, function], the innermost first]}."""
import ctypes
import json
import sys
import threading

arrived = threading.Barrier(5)
never = threading.Lock()
never.acquire()


def wait_here():
    arrived.wait()
    never.acquire()


def count(limit):
    for number in range(limit):
        if number == 3:
            wait_here()
        yield number


def through_a_generator():
    return sum(number for number in count(5))


def recursive(depth):
    return recursive(depth - 1) if depth else wait_here()


class Ä:
    def méthode(self):
        exec(compile('wait_here()', 'no such file — «x»', 'exec'))


def hold_the_lock():
    ctypes.PyDLL(None).pause()


def frames_of(frame):
    frames = []
    while frame is not None:
        frames.append([frame.f_code.co_filename, frame.f_lineno,
                       getattr(frame.f_code, 'co_qualname', frame.f_code.co_name)])
        frame = frame.f_back
    return frames


def main():
    for work in (through_a_generator, lambda: recursive(40), Ä().méthode, lambda: sorted([1], key=lambda _: wait_here())):
        threading.Thread(target=work, daemon=True).start()
    arrived.wait()
    # Each is in `acquire` before its frame stands on that line for good.
    while any(frame.f_lineno != wait_here.__code__.co_firstlineno + 2 for thread, frame in sys._current_frames().items()
              if thread != threading.get_ident()):
        pass
    known = {thread.native_id: frames_of(sys._current_frames()[thread.ident]) for thread in threading.enumerate()
             if thread is not threading.main_thread()}
    print(json.dumps(known), flush=True)
    hold_the_lock()


main()
