"""The ranks that PyTorch's own analyser of the Flight Recorder names: flight_analyser.py FOLDER... prints a JSON object.

gloo's dumps do not tell the ranks of their groups, which the analyser needs: it gets the ranks that entered a call of each.
"""
import json
import pathlib
import pickle
import sys
import tempfile

from torch.distributed.flight_recorder.components.builder import build_db
from torch.distributed.flight_recorder.components.config_manager import JobConfig
from torch.distributed.flight_recorder.components.loader import read_dir


def with_groups(dumps):
    groups = {}
    for rank, dump in dumps.items():
        for entry in dump['entries']:
            groups.setdefault(tuple(entry['process_group']), set()).add(rank)
    for rank, dump in dumps.items():
        dump['pg_config'] = {name: {'name': name, 'desc': description, 'ranks': str(sorted(ranks))}
                             for (name, description), ranks in groups.items() if rank in ranks}
    return dumps


def named(folder):
    dumps = {int(path.name.rpartition('_')[2]): pickle.loads(path.read_bytes()) for path in folder.glob('trace_rank_*')}
    with tempfile.TemporaryDirectory() as scratch:
        for rank, dump in with_groups(dumps).items():
            (pathlib.Path(scratch) / f'trace_rank_{rank}').write_bytes(pickle.dumps(dump))
        arguments = JobConfig().parse_args([scratch, '--prefix', 'trace_rank_'])
        collectives = build_db(read_dir(arguments)[0], arguments, '2.10').collectives
    ranks = set()
    for call in collectives:
        ranks |= set(call.missing_ranks or []) | set(call.mismatch_collectives or {})
    return sorted(ranks)


print(json.dumps({path: named(pathlib.Path(path)) for path in sys.argv[1:]}))
