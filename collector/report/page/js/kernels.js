// Kernels and operators: sort, filter, search. What is selected above is a column of its own.
const kernelTimes = () => {
  const {buckets, steps_per_bucket: perBucket, kernels} = page.kernels;
  const byName = new Map(kernels.map((kernel) => [kernel.name, kernel.us]));
  return {
    has: (name) => byName.has(name),
    // ns in the selection; whole buckets of steps.
    of: (name) => {
      const us = byName.get(name);
      if (us === undefined || !selection.active) return null;
      let sum = 0;
      page.steps.forEach((rank, r) => {
        if (!selection.hasRank(r)) return;
        for (let bucket = 0; bucket < buckets; ++bucket) {
          if (selection.hasStep(bucket * perBucket) || selection.hasStep((bucket + 1) * perBucket - 1)) sum += us[rank.trace * buckets + bucket];
        }
      });
      return sum * 1000;
    },
  };
};

const kernelsSection = () => {
  const kernels = tableOf('kernels');
  const question = 'where GPU time goes, by kernel';
  if (kernels.count === 0) return emptySection('kernels', 'Kernels', question, kernels.notes[0] || 'No kernel ran on a device.');
  const times = kernelTimes();
  const extra = [{name: 'in selection', value: (row) => {
    const ns = times.of(kernels.at(row, 'name'));
    return [ns, ns === null ? '' : formatNs(ns)];
  }}];
  const table = dataTable(kernels, {noun: 'kernels', search: true, shorten: shortName, extra, columns: ['name', 'calls', 'total_ns', 'share_percent', 'mean_ns', 'median_ns', 'p95_ns', 'max_ns', 'ranks']});
  const show = () => table.element.classList.toggle('has-selection', selection.active);
  selection.onChange(() => {
    show();
    table.redraw();
  });
  show();
  return section('kernels', 'Kernels', question, 'selection', table.element);
};

const opsSection = () => {
  const ops = tableOf('ops');
  const question = 'as torch’s key_averages() counts them';
  if (ops.count === 0) return emptySection('ops', 'Operators', question, ops.notes[0] || 'No operator was recorded: --level full records PyTorch’s.');
  const ranks = [...new Set(ops.rowsWhere(() => true).map((row) => ops.at(row, 'rank')))];
  let wanted = ranks.length < 2 ? 'all' : String(ranks[0]);
  const accepts = (row) => {
    const rank = ops.at(row, 'rank');
    const place = page.steps.findIndex((of) => of.rank === rank);
    return (wanted === 'all' || String(rank) === wanted) && (!selection.active || place < 0 || selection.hasRank(place));
  };
  const pick = ranks.length < 2 ? null : el('select', {'aria-label': 'rank', onchange: (event) => {
    wanted = event.target.value;
    table.accept(accepts);
  }}, ranks.map((rank) => el('option', {value: String(rank)}, `rank ${rank}`)), el('option', {value: 'all'}, 'all ranks'));
  const table = dataTable(ops, {noun: 'operators', search: true, tools: pick, shorten: shortName, columns: ['rank', 'name', 'calls', 'self_cpu_ns', 'self_cpu_percent', 'cpu_total_ns', 'cpu_avg_ns', 'self_cuda_ns', 'cuda_total_ns', 'flops', 'self_cuda_mem_bytes', 'self_cpu_mem_bytes', 'module', 'pass']});
  table.accept(accepts);
  selection.onChange(() => table.accept(accepts));
  return section('ops', 'Operators', question, 'selection', table.element);
};
