"""The questions that only a GPU can answer, and what this run says to each."""


def answer(findings, beginning):
    """The findings whose names begin so; None: they were not asked for, or not here."""
    said = [finding for finding in findings if finding['name'].startswith(beginning) and
            'not checked' not in finding['text'] and 'not asked' not in finding['text']]
    return '; '.join(f'{finding["name"]}: {finding["text"]}' for finding in said) or None


# (question, how the names of the findings begin that answer it)
ASKED = [
    ('1. Correlation ids without API kinds, with this CUPTI', 'C++ kernels joined'),
    ('2. Cost per launch and per step, graphs as a whole and by node', 'overhead'),
    ('3. A torch.profiler in the middle while we subscribe', 'the program profiles itself'),
    ('4. InitializeInjection before or after torch maps libcupti', 'libcupti mapped'),
    ('8. atexit against the teardown of libcuda', 'short processes'),
    ('10. The facts of docs/cupti.md', 'fact '),
]
NOT_YET = [
    ('5. PM sampling at 1 ms and 10 us', 'ranktap has no counters yet'),
    ('6. One pass a step by UserRange replay with NCCL in the range', 'ranktap has no counters yet'),
    ('7. Weight of an hfma in thread instructions', 'ranktap has no counters yet'),
    ('9. Which cuBLAS GEMMs reach the public cublasLtMatmul', 'ranktap has no cuBLAS shims yet'),
]


def answers(findings, stand_in):
    """(question, answer or None, why there is none)."""
    no_run = 'this was the stand-in' if stand_in else 'that check was not run here'
    asked = [(question, None if stand_in else answer(findings, beginning), no_run) for question, beginning in ASKED]
    return asked + [(question, None, because) for question, because in NOT_YET]
