"""The claims of docs/measurements/gpu.md, and the findings that prove or refute each."""

# (claim, target, how the names of the findings begin)
CLAIMS = [
    ('cost of level *kernels* on GPT-2 124M beside empty handlers and dropped buffers', 'floor + max(15 % of it, 0.3 points)',
     'kernels at most floor + max(15 %, 0.3 points), gpt2'),
    ('cost per launch of a launch-bound MLP, stacks off', '1 us above the floor', 'at most 1 us a launch above the floor, mlp'),
    ('torch.profiler with CUDA alone beside *kernels*', 'at least 4 times ours', 'torch.profiler CUDA at least 4 times kernels'),
    ('torch.profiler with CPU and CUDA beside *full*', 'at least 4 times ours',
     'torch.profiler CPU and CUDA at least 4 times full'),
    ('a step at the edge of a window', 'reported', 'cost of a step in pairs, mlp: kernels'),
    ('what each option costs', 'reported', 'variant against the usual'),
    ('kernels joined to their launches', 'all', 'C++ kernels joined to launches'),
    ('torch.profiler in the middle of a run, both ways of loading', 'its trace complete, one gap in ours',
     'the program profiles itself'),
    ('graphs at both levels', 'whole or by node at *kernels*, by node at *full*', 'graphs '),
    ('short processes end as bare', 'each of them', 'short processes'),
    ('cuInit, end, peak memory and device memory of a process', 'reported', 'start and end of a CUDA process'),
    ('exit with a live collector', '500 ms more than bare', 'end of a CUDA process beside a live collector'),
    ("the memory's peak", 'that of `torch.cuda.max_memory_allocated()`', 'PyTorch mlp: peak memory'),
    ('device memory of a PyTorch program', 'reported', 'PyTorch mlp: device memory'),
    ('launches whose stack is a memo hit', 'reported', 'stack memo, '),
    ('the clock over minutes', 'no kernel over 20 us early, no drift', 'clocks'),
    ('the facts of CUPTI', 'each answered', 'fact '),
]


def page(findings):
    """The rows of a table: what each claim's findings say."""
    rows = []
    for claim, target, beginning in CLAIMS:
        said = [one for one in findings if one['name'].startswith(beginning)]
        marks = {True: 'met', False: '**missed**', None: 'open'}
        proof = '; '.join(f'{one["name"]}: {one["text"]} ({marks[one["met"]]})' for one in said)
        rows.append(f'| {claim} | {target} | {proof or "not asked"} |')
    return ['| claim | target | what proves it |', '|---|---|---|', *rows]
