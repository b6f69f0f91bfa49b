// Kernels and operators: sort, filter, search. What is selected above is a column of its own.
// What of `list` (page.times.kernels, ...) the selection holds; `keyOf` names its entries.
import {page, selection, tableOf} from './begin.js';
import {formatNs, shortName} from './units.js';
import {el, emptySection, section} from './dom.js';
import {dataTable} from './tables.js';
import {noteView, remember} from './view_state.js';

export const timesInSelection = (list, keyOf) => {
  const {buckets, steps_per_bucket: perBucket} = page.times;
  const byKey = new Map(list.map((entry) => [keyOf(entry), entry.us]));
  return {
    has: (key) => byKey.has(key),
    // ns; whole buckets of steps. null: not known, or nothing is selected.
    of: (key) => {
      const us = byKey.get(key);
      if (us === undefined || !selection.active) return null;
      let sum = 0;
      page.steps.forEach((rank, r) => {
        if (!selection.hasRank(r)) return;
        for (let bucket = 0; bucket < buckets; ++bucket) {
          const [first, last] = [bucket * perBucket, (bucket + 1) * perBucket - 1];
          if (first <= selection.steps[1] && last >= selection.steps[0]) sum += us[rank.trace * buckets + bucket];
        }
      });
      return sum * 1000;
    },
  };
};
// A table's column of it, and the table with it; shown while there is a selection.
export const selectionColumn = (times, keyOfRow) => [{name: 'in selection', value: (row) => {
  const ns = times.of(keyOfRow(row));
  return [ns, ns === null ? '' : formatNs(ns)];
}}];
export const followSelection = (table) => {
  const show = () => {
    table.element.classList.toggle('has-selection', selection.active);
    table.redraw();
  };
  selection.onChange(show);
  show();
};

export const kernelsSection = () => {
  const kernels = tableOf('kernels');
  const question = 'where GPU time goes, by kernel';
  if (kernels.count === 0) return emptySection('kernels', 'Kernels', question,
      kernels.notes[0] || 'No kernel ran on a device.');
  const times = timesInSelection(page.times.kernels, (kernel) => kernel.name);
  const extra = selectionColumn(times, (row) => kernels.at(row, 'name'));
  const table = dataTable(kernels,
      {noun: 'kernels', search: true, shorten: shortName, extra,
      columns: ['name', 'calls', 'total_ns', 'share_percent', 'mean_ns', 'median_ns', 'p95_ns', 'max_ns', 'ranks']});
  followSelection(table);
  return section('kernels', 'Kernels', question, 'selection', table.element);
};

export const opsSection = () => {
  const ops = tableOf('ops');
  const question = 'as torch’s key_averages() counts them';
  if (ops.count === 0) return emptySection('ops', 'Operators', question,
      ops.notes[0] || 'No operator was recorded: --level full records PyTorch’s.');
  const ranks = [...new Set(ops.rowsWhere(() => true).map((row) => ops.at(row, 'rank')))];
  let wanted = ranks.length < 2 ? 'all' : String(ranks[0]);
  const accepts = (row) => {
    const rank = ops.at(row, 'rank');
    const place = page.steps.findIndex((of) => of.rank === rank);
    if (selection.active && place >= 0) return selection.hasRank(place);
    return wanted === 'all' || String(rank) === wanted;
  };
  const pick = ranks.length < 2 ? null : el('select', {'aria-label': 'rank', onchange: (event) => {
    wanted = event.target.value;
    table.accept(accepts);
    noteView();
  }}, ranks.map((rank) => el('option', {value: String(rank)}, `rank ${rank}`)),
      el('option', {value: 'all'}, 'all ranks'));
  const table = dataTable(ops, {noun: 'operators', search: true, tools: pick, shorten: shortName,
      columns: ['rank', 'name', 'calls', 'self_cpu_ns', 'self_cpu_percent', 'cpu_total_ns',
      'self_cuda_ns', 'cuda_total_ns', 'flops', 'self_cuda_mem_bytes', 'self_cpu_mem_bytes', 'module', 'pass']});
  table.accept(accepts);
  const first = wanted;
  if (pick !== null) remember('ops.rank', () => (wanted === first ? null : wanted), (rank) => {
    pick.value = wanted = rank || first;
    table.accept(accepts);
  });
  selection.onChange(() => table.accept(accepts));
  return section('ops', 'Operators', question, 'selection', table.element);
};
