"""Writes torch.profiler's files of a made-up training job: RANKS STEPS FOLDER [--layers N].

Deterministic. Rank 3 computes longer than the others in the second half, so that they wait for it in each
all-reduce; every 40th step all ranks wait for their data. Modules, operators with shapes, memory and collectives
with their sizes are there, of the first three steps only where there are more than 100: files of 1,000 steps
would be 500 MB.
"""
import argparse
import json
import pathlib

KERNELS = {
    'gemm': 'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas',
    'attention': 'void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t>>'
                 '(pytorch_flash::Flash_fwd_params)',
    'norm': 'void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)',
    'add': 'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, '
           'std::array<char*, 3>>(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3>)',
    'adam': 'void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>, '
            'at::native::FusedAdamMathFunctor<float, 4>>(at::native::TensorListMetadata<4>)',
    'nccl': 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)',
}
MEMBERS = (('norm', 'LayerNorm_0', 0.08, None), ('attention', 'SelfAttention_0', 0.35, None),
           ('gemm', 'Linear_0', 0.42, [[4096, 1024], [1024, 1024]]), ('add', 'Dropout_0', 0.06, None))


class Rank:
    def __init__(self, rank, ranks, layers):
        self.rank, self.ranks, self.layers = rank, ranks, layers
        self.events, self.correlation, self.python_id = [], 0, 0
        self.host = self.device = 1_000.0 + 3 * rank
        self.held, self.state = 2 << 30, rank * 7919 + 17

    def random(self):
        self.state = (self.state * 1103515245 + 12345) % (1 << 31)
        return self.state / (1 << 31)

    def add(self, cat, name, start, length, pid, tid, args):
        self.events.append(json.dumps({'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid,
                                       'ts': round(start, 3), 'dur': round(length, 3), 'args': args}))

    def launch(self, kind, length, stream=7, not_before=0, **args):
        self.correlation += 1
        self.add('cuda_runtime', 'cudaLaunchKernel', self.host, 6, 100 + self.rank, 1,
                 {'cbid': 211, 'correlation': self.correlation})
        start = max(self.device + 2, self.host + 9, not_before)
        self.add('kernel', KERNELS[kind], start, length, 0, stream,
                 {'device': 0, 'context': 1, 'stream': stream, 'correlation': self.correlation,
                  'grid': [512, 1, 1], 'block': [256, 1, 1], **args})
        self.host += 9
        self.device = start + length
        return start

    def memory(self, size, address):
        self.held += size
        self.events.append(json.dumps({
            'ph': 'i', 'cat': 'cpu_instant_event', 's': 't', 'name': '[memory]', 'pid': 100 + self.rank, 'tid': 1,
            'ts': round(self.host, 3), 'args': {'Total Reserved': 6 << 30, 'Total Allocated': self.held, 'Bytes': size,
                                                'Addr': address, 'Device Id': 0, 'Device Type': 1}}))

    def module(self, name, parent, start):
        self.python_id += 1
        self.add('python_function', f'nn.Module: {name}', start, self.host - start, 100 + self.rank, 1,
                 {'Python id': self.python_id, 'Python parent id': parent, 'Python module id': self.python_id % 97})

    def forward(self, step, full, load):
        began = self.host
        for layer in range(self.layers):
            inside = self.host
            for kind, member, weight, shape in MEMBERS:
                before = self.host
                if full:
                    self.memory(24 << 20, (layer * 8 + len(member)) << 26)
                self.launch(kind, 90 * weight * load * (1 + 0.08 * self.random()))
                if full and shape:
                    self.add('cpu_op', 'aten::mm', before - 1, self.host - before + 2, 100 + self.rank, 1,
                             {'External id': self.correlation, 'Input Dims': shape, 'Input type': ['c10::BFloat16'] * 2,
                              'Concrete Inputs': ['', '']})
                if full:
                    self.module(member.replace('_0', f'_{layer}'), 0, before)
            if full:
                self.module(f'TransformerLayer_{layer}', 0, inside)
        if full:
            self.module('Transformer_0', 0, began)

    def collective(self, length, arrival, size):
        group = list(range(self.ranks))
        self.launch('nccl', length, 20, not_before=arrival,
                    **{'Collective name': 'allreduce', 'In msg nelems': size // 2, 'Out msg nelems': size // 2,
                       'dtype': 'BFloat16', 'Group size': self.ranks, 'Process Group Name': '0',
                       'Process Group Description': 'default_pg', 'Process Group Ranks': str(group)})


def write_job(ranks, steps, folder, layers=4):
    job = [Rank(rank, ranks, layers) for rank in range(ranks)]
    for step in range(steps):
        full = steps <= 100 or step < 3
        starts = [rank.host for rank in job]
        for rank in job:
            slow = 1.35 if rank.rank == 3 % ranks and step >= steps // 2 else 1
            if step % 40 == 39:
                rank.host += 700
            rank.host += 40 + 25 * rank.random()
            rank.forward(step, full, slow)
            for _ in range(layers):
                rank.launch('gemm', 88 * slow * (1 + 0.08 * rank.random()))
                if full:
                    rank.memory(-(24 << 20) * len(MEMBERS), 1)
        for size, transfer in ((64 << 20, 110), (4 << 20, 24)):
            # All end together: who comes early waits in the kernel.
            ready = [max(rank.device + 2, rank.host + 9) for rank in job]
            end = max(ready) + transfer
            for rank, arrival in zip(job, ready):
                rank.collective(end - arrival, arrival, size)
        for rank, start in zip(job, starts):
            rank.launch('adam', 60)
            rank.host = max(rank.host, rank.device + 5)
            rank.add('user_annotation', f'ProfilerStep#{step}', start, rank.host - start, 100 + rank.rank, 1, {})
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank in job:
        head = {'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3', 'numSms': 132,
                                                          'computeMajor': 9, 'computeMinor': 0}],
                'distributedInfo': {'backend': 'nccl', 'rank': rank.rank, 'world_size': ranks,
                                    'pg_config': [{'pg_name': '0', 'pg_desc': 'default_pg', 'pg_size': ranks,
                                                   'backend_config': 'cuda:nccl', 'ranks': list(range(ranks))}]},
                'baseTimeNanoseconds': 1_790_000_000_000_000_000}
        with open(folder / f'rank{rank.rank}.json', 'w') as file:
            file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n' + ',\n'.join(rank.events) + '\n]}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('ranks', type=int)
    parser.add_argument('steps', type=int)
    parser.add_argument('folder')
    parser.add_argument('--layers', type=int, default=4)
    options = parser.parse_args()
    write_job(options.ranks, options.steps, options.folder, options.layers)


if __name__ == '__main__':
    main()
