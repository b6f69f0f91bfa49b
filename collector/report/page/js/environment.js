// What ran, where, and how it was recorded.
import {hasTable, page, tableOf} from './begin.js';
import {formatNs} from './units.js';
import {el, section, shellWord} from './dom.js';
import {dataTable} from './tables.js';

export const environmentSection = () => {
  const {run} = page;
  const started = run.start_realtime_ns > 0 ? new Date(run.start_realtime_ns / 1e6) : null;
  const ended = run.end_realtime_ns ? `, for ${formatNs(run.end_realtime_ns - run.start_realtime_ns)}` : '';
  const facts = [
    ['Command', run.command.length === 0 ? null : el('code', {}, run.command.map(shellWord).join(' '))],
    ['Run', page.place || run.path], ['Host', run.host ||
        [...new Set(run.traces.map((trace) => trace.host).filter(Boolean))].join(', ')],
    ['Started', started === null ? null : `${started.toISOString().replace('T', ' ').slice(0, 19)} UTC${ended}`],
    ['Exit', run.exit_signal !== null ? `signal ${run.exit_signal}` : run.exit_status !== null
        ? `status ${run.exit_status}` : null],
    ['Recorded by', run.version ? `ranktap ${run.version}, level ${run.level || 'unknown'}` : 'another tool'],
    ...Object.entries(run.metadata),
        ...Object.entries(run.refused).map(([reason, count]) => [`Refused: ${reason}`, String(count)]),
  ].filter(([, value]) => value);
  return section('environment', 'Environment', 'what ran, where, and how it was recorded', 'all',
    el('dl', {class: 'facts'}, facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
    hasTable('ranks') ? dataTable(tableOf('ranks'),
        {noun: 'ranks', columns: ['rank', 'pid', 'device', 'gpu_busy_percent', 'kernels', 'copies', 'events', 'lost',
        'status', 'last_collective', 'open_call', 'file']}).element : null,
    hasTable('devices') ? dataTable(tableOf('devices'), {noun: 'devices'}).element : null);
};
