"""What HTA answers for a trace, as JSON: hta_answers.py TRACE (any of its ranks is called 0)."""
import json
import os
import sys

os.environ['HTA_DISABLE_NS_ROUNDING'] = '1'
import logging  # noqa: E402

logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis  # noqa: E402


def rows(frame):
    return json.loads(frame.to_json(orient='records', double_precision=10))


def attempt(question):
    """HTA raises where a trace has nothing to ask about (no copies, no launches)."""
    try:
        return question()
    except Exception as error:  # noqa: BLE001
        return f'{type(error).__name__}'


def main():
    analysis = TraceAnalysis(trace_files={0: os.path.abspath(sys.argv[1])})
    def kernels():
        kinds, names = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0,
                                                         include_memory_kernels=True)
        return {'kinds': rows(kinds), 'names': sorted(rows(names), key=lambda row: str(row['name']))}
    def series(frames):
        return {key: rows(frame.drop(columns=[c for c in ('index', 'id') if c in frame]))
                for key, frame in frames.items()}
    answers = {
        'temporal': attempt(lambda: rows(analysis.get_temporal_breakdown(visualize=False))),
        'idle': attempt(lambda: rows(analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0])),
        'kernels': attempt(kernels),
        'overlap': attempt(lambda: rows(analysis.get_comm_comp_overlap(visualize=False))),
        'launches': attempt(lambda: {str(rank): rows(frame.describe()) for rank, frame in
                                     analysis.get_cuda_kernel_launch_stats(visualize=False).items()}),
        'queue': attempt(lambda: rows(analysis.get_queue_length_summary(ranks=[0]).reset_index())),
        'annotations': attempt(lambda: rows(analysis.get_gpu_user_annotation_breakdown(
            visualize=False, num_kernels=1000, duration_ratio=1.0))),
        'bandwidth': attempt(lambda: rows(analysis.get_memory_bw_summary(ranks=[0]).reset_index())),
    }
    json.dump(answers, sys.stdout)


if __name__ == '__main__':
    main()
