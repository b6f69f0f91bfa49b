"""What TensorBoard's profiler plugin finds in a trace, as JSON: operators, kernels, the step's costs."""
import json
import sys
import tempfile

from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.module_op import aggegate_module_view


def view(modules):
    return [[module.name, module.occurences, view(module.children)] for module in modules or []]


with tempfile.TemporaryDirectory() as cache:
    data = RunProfileData.parse('worker0', 'span', sys.argv[1], cache)
    data.process()
    kernels = data.kernel_stat
    print(json.dumps({
        'operators': sorted([op.name, op.calls, round(op.host_duration, 1), round(op.device_duration, 1)]
                            for op in data.op_list_groupby_name),
        'kernels': [] if kernels is None else sorted([name, int(count)] for name, count
                                                     in zip(kernels.index, kernels['count'])),
        'modules': view(aggegate_module_view(data.tid2tree, data.events)),
        'steps': data.steps_names,
        # Of its distributed view: computing, overlapping, communicating and other time; what each collective moved.
        'overlap': [[round(part, 1) for part in vars(costs).values()] for costs in data.comm_overlap_costs],
        'collectives': [[node.name, node.step_name, node.input_shape, node.input_type, round(node.total_time, 1)]
                        for node in data.comm_node_list or []],
        'costs of the mean step': [round(cost, 1) for cost in data.avg_costs.costs],
    }))
