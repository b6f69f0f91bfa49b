"""Prints what HTA's get_frequent_cuda_kernel_sequences answers for a trace and each operator named, as JSON."""
import json
import logging
import os
import sys
import tempfile

os.environ['HTA_DISABLE_NS_ROUNDING'] = '1'
logging.disable(logging.CRITICAL)

from hta.trace_analysis import TraceAnalysis  # noqa: E402

trace, *operators = sys.argv[1:]
answers = {}
for operator in operators:
    # HTA's second search in one object fails: the first leaves its columns in the trace.
    analysis = TraceAnalysis(trace_files={0: trace})
    with tempfile.TemporaryDirectory() as scratch:
        found = analysis.get_frequent_cuda_kernel_sequences(
            operator_name=operator, output_dir=scratch, min_pattern_len=3, rank=0, visualize=False)
    answers[operator] = [[row['pattern'], int(row['count']), float(row['GPU kernel duration (us)']),
                          float(row['CPU op duration (us)'])] for _, row in found.iterrows()]
print(json.dumps(answers))
