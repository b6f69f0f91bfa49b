"""Runs the operators of a recorded run again, with PyTorch alone, and compares them with what was recorded.

Each operator of the dispatcher that no other one called runs with inputs of the recorded shapes, strides and types; it
calls the others itself, as in the program. Floats lie between 0 and 1, integers are 0, and no output is anybody's
input, so values mean nothing. Collectives run over gloo, in a process for each rank. A reduction is a sum.
"""
import argparse
import collections
import itertools
import json
import os
import re
import socket
import statistics
import tempfile
import threading
import warnings

os.environ.setdefault('TORCH_CPP_LOG_LEVEL', 'ERROR')  # its observer warns that it is on

import torch
import torch.distributed
import torch.multiprocessing

DTYPES = {
    'float': torch.float32, 'double': torch.float64, 'c10::Half': torch.float16, 'c10::BFloat16': torch.bfloat16,
    'long int': torch.int64, 'int': torch.int32, 'short int': torch.int16, 'signed char': torch.int8,
    'unsigned char': torch.uint8, 'bool': torch.bool, 'c10::complex<float>': torch.complex64,
    'c10::complex<double>': torch.complex128}
# A Python number beside a tensor was recorded as a tensor of these types: PyTorch treats it as another than one.
NUMBERS = {'long int': 1, 'double': 0.5, 'bool': True, 'c10::complex<double>': 0.5j}
COLLECTIVE = 'c10d::'
OPERATOR = re.compile(r'\w+::\w+')


class Run:
    """One operator as it ran: a row of the data."""

    def __init__(self, call, parent, ns, thread, sequence, is_backward, group, calls):
        self.name, self.schema, self.inputs = calls[call]
        self.call, self.parent, self.ns, self.thread = call, parent, ns, thread
        self.sequence, self.is_backward, self.group = sequence, bool(is_backward), group
        self.makes_graph = False

    def shapes(self):
        return json.dumps([shape_of(value) for value in self.inputs])


def shape_of(value):
    if isinstance(value, dict) and 'sizes' in value:
        return value['sizes']
    if isinstance(value, list) and any(flat(value)):
        return [shape_of(each) for each in value]
    return []


class Rank:

    def __init__(self, text):
        data = json.loads(text)
        self.rank = data['rank']
        self.runs = [Run(*row, data['calls']) for row in data['runs']]
        self.find_graphs()

    def find_graphs(self):
        """An operator that autograd will go back through has taken a number: the next of its thread has a greater one."""
        before = {}
        for at, run in enumerate(self.runs):
            if run.is_backward or run.sequence < 0:
                continue
            for earlier in before.pop(run.thread, []):
                if self.is_inside(at, earlier):
                    before.setdefault(run.thread, []).append(earlier)
                else:
                    self.runs[earlier].makes_graph = run.sequence > self.runs[earlier].sequence
            before.setdefault(run.thread, []).append(at)

    def is_inside(self, at, around):
        while at > around:
            at = self.runs[at].parent
        return at == around

    def collectives(self):
        """{group: names in order} of what needs others."""
        of_group = collections.defaultdict(list)
        for run in self.runs:
            if run.name.startswith(COLLECTIVE):
                of_group[run.group].append(run.name)
        return of_group


def operator_of(run):
    """The dispatcher's operator; None: there is none of this name here."""
    if not run.schema or '::' not in run.name:
        return None
    namespace, name = run.schema.split('(')[0].split('::')
    name, _, overload = name.partition('.')
    packet = getattr(getattr(torch.ops, namespace), name, None)
    operator = getattr(packet, overload or 'default', None)
    return operator if hasattr(operator, '_schema') else None


class Inputs:
    """Tensors by their shapes. Those that shared memory share it."""

    def __init__(self, device, groups):
        self.device, self.groups, self.group = device, groups, None

    def make(self, run, operator, needs_graph, with_numbers=False):
        memory = self.memory(run.inputs)
        self.group = self.groups.get(run.group)
        arguments, named = [], {}
        for place, (value, argument) in enumerate(zip(run.inputs, operator._schema.arguments)):
            if with_numbers and place > 0 and may_be_number(value, argument):
                made = NUMBERS[value['type']]
            else:
                made = self.value(value, str(argument.type), memory)
            if needs_graph:
                ask_for_gradients(made)
            if argument.kwarg_only:
                named[argument.name] = made
            else:
                arguments.append(made)
        return arguments, named

    def memory(self, values):
        """{(number, type, device): the elements of a storage}"""
        sizes = collections.Counter()
        for value in flat(values):
            last = sum((size - 1) * stride for size, stride in zip(value['sizes'], value['strides']))
            reach = value['offset'] + last + 1 if all(value['sizes']) else value['offset']
            key = value['storage'], value['type'], self.device or value['device']
            sizes[key] = max(sizes[key], reach)
        return {key: elements(size, DTYPES[key[1]], key[2]) for key, size in sizes.items()}

    def value(self, value, kind, memory):
        if isinstance(value, list):
            return [self.value(each, '', memory) for each in value]
        if 'c10d.ProcessGroup' in kind:
            return self.group.boxed()
        if 'c10d.ReduceOp' in kind:
            return torch.distributed.ReduceOp(torch.distributed.ReduceOp.SUM).boxed()
        if not isinstance(value, dict):
            return value
        if 'device' not in value:
            if kind.startswith('Optional'):
                return None
            raise ValueError(f'takes a {value["other"] or "value"} that was not recorded')
        if 'sizes' not in value:
            return torch.device(self.device or value['device'])
        base = memory[value['storage'], value['type'], self.device or value['device']]
        return base.as_strided(value['sizes'], value['strides'], value['offset'])


def may_be_number(value, argument):
    return (isinstance(value, dict) and value.get('sizes') == [] and value['device'] == 'cpu' and
            value['type'] in NUMBERS and str(argument.type) == 'Tensor' and argument.alias_info is None)


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        elif isinstance(value, dict) and 'sizes' in value:
            yield value


def elements(count, dtype, device):
    if dtype.is_floating_point or dtype.is_complex:
        return torch.rand(count, dtype=torch.float64 if dtype.is_floating_point else dtype).to(device, dtype)
    return torch.zeros(count, dtype=dtype, device=device)


def ask_for_gradients(value):
    if isinstance(value, list):
        for each in value:
            ask_for_gradients(each)
    elif isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        value.requires_grad_()


class Replay:
    """The operators of one rank, ready to run."""

    def __init__(self, rank, device, groups, without_collectives):
        self.left_out, self.calls = collections.Counter(), []
        self.inputs = Inputs(device, groups)
        self.without_collectives = without_collectives
        made, runs_it = {}, set()
        for at, run in enumerate(rank.runs):
            if run.parent in runs_it:  # the other one calls it
                runs_it.add(at)
                continue
            operator = operator_of(run)
            if operator is None:
                if OPERATOR.fullmatch(run.name):
                    self.left_out[run.name, 'no such operator here, or its schema was not recorded'] += 1
                continue
            runs_it.add(at)
            key = run.call, run.makes_graph, run.group
            if key not in made:
                made[key] = self.prepare(run, operator)
            if made[key] is not None:
                self.calls.append(made[key])

    def prepare(self, run, operator):
        """(operator, arguments, named, whether autograd looks on), tried once; None: it cannot run."""
        if run.name.startswith(COLLECTIVE):
            if self.without_collectives:
                self.left_out[run.name, self.without_collectives] += 1
                return None
            return operator, *self.inputs.make(run, operator, False), False
        writes = any(argument.alias_info is not None and argument.alias_info.is_write
                     for argument in operator._schema.arguments)
        graphs = (True, False) if run.makes_graph and not writes else (False,)
        for with_graph, with_numbers in itertools.product(graphs, (True, False)):  # few operators take numbers
            try:
                call = operator, *self.inputs.make(run, operator, with_graph, with_numbers), with_graph
                execute(call)
                return call
            except Exception as failure:
                reason = f'{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ""}'
        self.left_out[run.name, reason] += 1
        return None

    def once(self):
        works = []
        for call in self.calls:
            result = execute(call)
            if call[0].namespace == 'c10d':
                works.append(result[-1] if isinstance(result, (tuple, list)) else result)
        for work in works:
            wait(work)


def execute(call):
    operator, arguments, named, with_graph = call
    with torch.set_grad_enabled(with_graph):
        return operator(*arguments, **named)


def wait(work):
    work = torch.distributed.Work.unbox(work) if hasattr(torch.distributed.Work, 'unbox') else work
    work.wait()


def measured(replay, repeat):
    """[{name: [calls, ns]}], of each pass."""
    passes = []
    for _ in range(repeat):
        if replay.inputs.groups:
            torch.distributed.barrier()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            replay.once()
        passes.append(times_of(profiled(profile)))
    return passes


def observed(replay):
    """{name: Counter of shapes} of one more pass. The profiler leaves out those of lists of 30 tensors and more; PyTorch's
    observer has them."""
    if replay.inputs.groups:
        torch.distributed.barrier()
    observer = torch.profiler.ExecutionTraceObserver()
    with tempfile.TemporaryDirectory() as folder:
        observer.register_callback(os.path.join(folder, 'pass.json'))
        observer.start()
        replay.once()
        observer.stop()
        observer.unregister_callback()
        with open(os.path.join(folder, 'pass.json')) as file:
            nodes = json.load(file)['nodes']
    shapes = collections.defaultdict(collections.Counter)
    for node in nodes:
        inputs = node['inputs']
        both = zip(*((inputs['shapes'], inputs['types']) if isinstance(inputs, dict) else  # before 2.2 it was flat
                     (node['input_shapes'], node['input_types'])))
        shapes[node['name']][json.dumps([shape if 'Tensor' in kind else [] for shape, kind in both])] += 1
    return shapes


def profiled(profile):
    """(name, ns) of this thread's operators, and of gloo's calls on its own threads. The profiler's lists of events
    leave out an operator in another of its name; its file has all."""
    with tempfile.TemporaryDirectory() as folder:
        profile.export_chrome_trace(os.path.join(folder, 'pass.json'))
        with open(os.path.join(folder, 'pass.json')) as file:
            events = json.load(file)['traceEvents']
    for event in events:
        if event.get('ph') != 'X' or event.get('cat') not in ('cpu_op', 'user_annotation'):
            continue
        if event.get('tid') == threading.get_native_id() or event['name'].startswith('gloo:'):
            yield event['name'], event['dur'] * 1000


def times_of(events):
    rows = collections.defaultdict(lambda: [0, 0])
    for name, ns in events:
        rows[name][0] += 1
        rows[name][1] += ns
    return rows


def compare(rank, replay, passes, shapes):
    """Rows of the table, of all operators that were recorded, the longest first."""
    runs = [run for run in rank.runs if operator_of(run) is not None or run.name.startswith('gloo:')]
    recorded_shapes = collections.defaultdict(collections.Counter)
    for run in runs:
        recorded_shapes[run.name][run.shapes()] += 1
    table = []
    for name, (calls, ns) in times_of((run.name, run.ns) for run in runs).items():
        table.append({'operator': name, 'recorded_calls': calls, 'calls': passes[0].get(name, [0])[0],
                      'same_shapes': sum((recorded_shapes[name] & shapes[name]).values()), 'recorded_ns': ns,
                      'ns': statistics.median(each[name][1] if name in each else 0 for each in passes)})
    table.sort(key=lambda row: (-row['recorded_ns'], row['operator']))
    return {'rank': rank.rank, 'operators': table,
            'left_out': [{'operator': name, 'why': why, 'calls': calls}
                         for (name, why), calls in sorted(replay.left_out.items())]}


def show(answer):
    total = collections.Counter()
    lines = [('operator', 'recorded', 'here', 'same shapes', 'recorded ms', 'here ms')]
    for row in answer['operators']:
        total.update({key: value for key, value in row.items() if key != 'operator'})
        lines.append((row['operator'], row['recorded_calls'], row['calls'], row['same_shapes'],
                      f"{row['recorded_ns'] / 1e6:.3f}", f"{row['ns'] / 1e6:.3f}"))
    widths = [max(len(str(line[column])) for line in lines) for column in range(6)]
    text = [f"rank {answer['rank']}: {total['recorded_calls']} operators were recorded, {total['calls']} of these names ran "
            f"here, {total['same_shapes']} with the same shapes"]
    for line in lines:
        text.append('  '.join([str(line[0]).ljust(widths[0])] + [str(cell).rjust(width)
                                                                  for cell, width in zip(line[1:], widths[1:])]))
    text += [f"not run: {row['operator']}, {row['calls']} times: {row['why']}" for row in answer['left_out']]
    print('\n'.join(text), flush=True)


def why_no_collectives(ranks):
    """A rank would wait forever where the others did not record the same calls. Empty: they did."""
    present = {each.rank for each in ranks}
    for group in sorted({group for each in ranks for group in each.collectives()}):
        members = set(json.loads(group)) if group else present
        if not members <= present:
            return f'ranks {sorted(members - present)} of its group are not in this script'
        called = [each.collectives()[group] for each in ranks if each.rank in members]
        messages = collections.Counter('send' if name == 'c10d::send' else 'receive'
                                       for names in called for name in names if is_message(name))
        if any(without_messages(names) != without_messages(called[0]) for names in called):
            return 'the ranks did not record the same collectives'
        if messages['send'] != messages['receive']:
            return 'not each message was recorded on both sides'
    return ''


def is_message(name):
    return name.startswith(('c10d::send', 'c10d::recv'))


def without_messages(names):
    return [name for name in names if not is_message(name)]


def make_groups(ranks, index, port):
    """{text of the ranks: group}"""
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    torch.distributed.init_process_group('gloo', rank=index, world_size=len(ranks))
    numbers, groups = [each.rank for each in ranks], {}
    for text in sorted({text for each in ranks for text in each.collectives()}):
        members = [numbers.index(member) for member in json.loads(text)] if text else numbers
        groups[text] = torch.distributed.group.WORLD
        if len(members) < len(ranks):
            groups[text] = torch.distributed.new_group(members)
    return groups


def run_rank(index, ranks, options, port):
    warnings.simplefilter('ignore')
    torch.set_num_threads(options.threads or max(1, torch.get_num_threads() // len(ranks)))
    rank, why = ranks[index], why_no_collectives(ranks)
    groups = {}
    if not why and any(each.collectives() for each in ranks):
        groups = make_groups(ranks, index, port)
    replay = Replay(rank, options.device, groups, why)
    replay.once()
    answer = compare(rank, replay, measured(replay, options.repeat), observed(replay))
    for turn in range(len(ranks)):
        if turn == index:
            show(answer)
        if groups:
            torch.distributed.barrier()
    if options.json:
        with open(options.json if len(ranks) == 1 else f'{options.json}.{rank.rank}', 'w') as file:
            json.dump(answer, file)
    if groups:
        torch.distributed.destroy_process_group()


def main(data, arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--repeat', type=int, default=3, help='times are the median of so many passes (3)')
    parser.add_argument('--device', help='run all operators there: cpu, cuda:0; else where they were')
    parser.add_argument('--threads', type=int, help='of PyTorch, in each rank')
    parser.add_argument('--json', help='also write the numbers to this file; with several ranks FILE.RANK')
    options = parser.parse_args(arguments)
    ranks = [Rank(text) for text in data]
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    if len(ranks) == 1:
        return run_rank(0, ranks, options, port)
    # Nothing ran here yet, so a fork is safe, and no rank imports PyTorch again.
    torch.multiprocessing.start_processes(run_rank, (ranks, options, port), nprocs=len(ranks), start_method='fork')
