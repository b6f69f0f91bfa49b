"""What TensorBoard's profiler plugin answers its page with, each worker's views and that of all workers, as JSON:
tensorboard_views.py TRACE... The page draws them with Google's charts, which it takes from the network."""
import json
import sys
import tempfile

from torch_tb_profiler.profiler.data import DistributedRunProfileData, RunProfileData
from torch_tb_profiler.profiler.run_generator import DistributedRunGenerator, RunGenerator

# Of the plugin's object, what no view shows: names of files, and what views are made of.
LEFT_OUT = ('worker', 'span', 'views', 'trace_file_path', 'profiler_start_ts', 'memory_snapshot', 'tid2tree', 'pl_tid2tree')


def views_of(profile):
    return {name: part for name, part in vars(profile).items() if name not in LEFT_OUT}


with tempfile.TemporaryDirectory() as cache:
    workers, answers = [], {}
    for number, path in enumerate(sys.argv[1:]):
        data = RunProfileData.parse(f'worker{number}', None, path, cache)
        profile = RunGenerator(data.worker, None, data).generate_run_profile()
        answers[data.worker] = {**views_of(profile), 'names': [view.display_name for view in profile.views],
                                'modules': profile.get_module_view()}
        workers.append(DistributedRunProfileData(data))
    if all(worker.has_communication for worker in workers):
        for worker in workers:
            worker.communication_parse()
        answers['all'] = views_of(DistributedRunGenerator(workers, None).generate_run_profile())
    print(json.dumps(answers, default=vars))
