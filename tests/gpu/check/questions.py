"""The questions that only a GPU can answer, and what this run says to each."""


def found(check, beginning):
    return [finding for finding in check.findings if finding['name'].startswith(beginning)]


def answer(check, beginning, text=None):
    """What the findings say whose names begin so; None: they were not asked for, or not here."""
    findings = [finding for finding in found(check, beginning) if 'not checked' not in finding['text'] and
                'not asked' not in finding['text']]
    if not findings or check.stand_in:
        return None
    return text or '; '.join(f'{finding["name"]}: {finding["text"]}' for finding in findings)


def answers(check):
    """(question, answer or None, why there is none)."""
    no_run = 'this was the stand-in' if check.stand_in else 'that check was not run here'
    return [
        ('1. Correlation ids without API kinds, with this CUPTI', answer(check, 'C++ kernels joined'), no_run),
        ('2. Cost per launch and per step, graphs as a whole and by node', answer(check, 'overhead'), no_run),
        ('3. A torch.profiler in the middle while we subscribe', answer(check, 'the program profiles itself'), no_run),
        ('4. InitializeInjection before or after torch maps libcupti', answer(check, 'libcupti mapped'), no_run),
        ('5. PM sampling at 1 ms and 10 us', None, 'ranktap has no counters yet'),
        ('6. One pass a step by UserRange replay with NCCL in the range', None, 'ranktap has no counters yet'),
        ('7. Weight of an hfma in thread instructions', None, 'ranktap has no counters yet'),
        ('8. atexit against the teardown of libcuda', answer(check, 'short processes'), no_run),
        ('9. Which cuBLAS GEMMs reach the public cublasLtMatmul', None, 'ranktap has no cuBLAS shims yet'),
    ]
