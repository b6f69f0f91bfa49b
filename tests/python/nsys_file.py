"""A database in the schema of `nsys export --type sqlite`, filled at random from a seed: two processes, kernels with three
forms of their names, copies, calls, ranges with and without a registered text."""
import random
import sqlite3

PIDS = (1 << 24, 2 << 24)  # globalPid: the process id shifted by 24
KERNELS = [  # demangled, base, mangled
    ('void at::native::scan<4, float>(float*, int)', 'scan', '_ZN2at6native4scanILi4EfEEvPT0_i'),
    ('void at::native::scan<8, float>(float*, int)', 'scan', '_ZN2at6native4scanILi8EfEEvPT0_i'),
    ('gemm', 'gemm', 'gemm'),
    ('ns::fill(float*)', 'fill', '_ZN2ns4fillEPf'),
]
CALLS = ['cudaLaunchKernel_v7000', 'cudaMemcpyAsync_v3020', 'cudaStreamSynchronize_v3020', 'cuLaunchKernel']
RANGES = [('forward', None), ('backward', None), ('ncclAllReduce', 'NCCL')]
COPIES = {1: 'Memcpy HtoD (Pinned -> Device)', 2: 'Memcpy DtoH (Device -> Pinned)', 8: 'Memcpy DtoD (Device -> Device)'}
MEMORY_KINDS = {1: (1, 2), 2: (2, 1), 8: (2, 2)}  # ENUM_CUDA_MEM_KIND: pinned 1, device 2

SCHEMA = '''
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
  shortName INTEGER, mangledName INTEGER, launchType INTEGER, registersPerThread INTEGER, gridX INTEGER,
  gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,
  dynamicSharedMemory INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER,
  dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER,
  color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
'''


def write(path, seed=16):
    """Writes the database and returns it, open."""
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    _Filler(database).fill(random.Random(seed))
    database.commit()
    return database


class _Filler:
    def __init__(self, database):
        self.db, self.ids = database, {}

    def text(self, value):
        if value not in self.ids:
            self.ids[value] = len(self.ids) + 1
            self.db.execute('INSERT INTO StringIds VALUES (?, ?)', (self.ids[value], value))
        return self.ids[value]

    def fill(self, dice):
        def insert(table, *row):
            self.db.execute(f'INSERT INTO {table} VALUES ({",".join("?" * len(row))})', row)

        for pid in PIDS:
            insert('NVTX_EVENTS', 0, None, 75, None, None, None, 'NCCL', pid, None, None, 1)
        now = 10_000
        for n in range(2_001):
            pid = dice.choice(PIDS)
            thread = pid + 7
            # Long tails, as times have: mean, median and deviation are far apart.
            length = int(dice.lognormvariate(8, 1.5)) + 1
            insert('CUPTI_ACTIVITY_KIND_RUNTIME', now, now + length // 3 + 1, None, thread, n,
                   self.text(dice.choice(CALLS)), 0)
            at = now + length // 3 + 5
            if n % 3 == 0:
                kind = dice.choice(list(COPIES))
                insert('CUPTI_ACTIVITY_KIND_MEMCPY', at, at + length, 0, 1, 7, n, pid, dice.randrange(1, 1 << 26),
                       kind, *MEMORY_KINDS[kind])
            else:
                names = [self.text(name) for name in dice.choice(KERNELS)]
                insert('CUPTI_ACTIVITY_KIND_KERNEL', at, at + length, 0, 1, None, 7, n, pid, *names, 0, 32,
                       dice.choice((1, 80)), dice.choice((1, 2)), 1, dice.choice((32, 128)), 1, 1, 0, 0, None)
            if n % 5 == 0:
                name, domain = dice.choice(RANGES)
                by_id = n % 2 == 0
                insert('NVTX_EVENTS', now - 3, at + length, 59, None, None, None, None if by_id else name, thread, None,
                       self.text(name) if by_id else None, 1 if domain else 0)
            now = at + length + 10
