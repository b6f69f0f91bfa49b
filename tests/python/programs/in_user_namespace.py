"""Runs a command as root of a user namespace whose users are 100,000 and on outside: in_user_namespace.py COMMAND..."""
import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
FIRST, COUNT = 100_000, 65_536

unshared, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        sys.exit(f'unshare: {os.strerror(ctypes.get_errno())}')
    os.write(unshared[1], b'1')
    os.read(mapped[0], 1)
    os.setgroups([])
    os.setgid(0)
    os.setuid(0)
    os.execvp(sys.argv[1], sys.argv[1:])
os.close(unshared[1])
if os.read(unshared[0], 1):
    for name in ('uid_map', 'gid_map'):
        with open(f'/proc/{child}/{name}', 'w') as file:
            file.write(f'0 {FIRST} {COUNT}\n')
os.write(mapped[1], b'1')
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
