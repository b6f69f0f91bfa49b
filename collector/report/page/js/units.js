// Numbers as people read them: three digits, a unit that suits them.
import {page} from './begin.js';

const threeDigits = (value) => {
  const size = Math.abs(value);
  if (size >= 99.95) return String(Math.round(value));
  return value.toFixed(size >= 9.995 ? 1 : 2);
};
const scaled = (value, units, base) => {
  let at = 0;
  let left = value;
  while (at + 1 < units.length && Math.abs(left) >= base * 0.9995) {
    left /= base;
    ++at;
  }
  return `${at === 0 && Number.isInteger(left) ? left : threeDigits(left)} ${units[at]}`;
};
export const formatNs = (ns) => {
  if (Math.abs(ns) >= 120e9) return `${threeDigits(ns / 60e9)} min`;
  return scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
};
export const formatBytes = (bytes) => scaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
export const formatFlops = (flops) => scaled(flops, ['', 'k', 'M', 'G', 'T', 'P', 'E'], 1000).trim();
export const formatPercent = (percent) =>
    `${Math.abs(percent) < 10 && percent !== 0 ? percent.toFixed(2) : percent.toFixed(1)} %`;
export const formatCount = (count) => {
  if (!Number.isInteger(count)) {
    const size = Math.abs(count);
    return size >= 1000 ? Math.round(count).toLocaleString('en') : Number(count.toPrecision(3)).toString();
  }
  return count.toLocaleString('en');
};

export const formatValue = (value, unit) => {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'string') return value;
  switch (unit) {
    case 'ns': return formatNs(value);
    case 'bytes': return formatBytes(value);
    case 'percent': return formatPercent(value);
    case 'flops':
    case 'flops/s': return formatFlops(value);
    default: return formatCount(value);
  }
};

// The number of a process, a thread, a rank or a step is a name: 11698, as other tools take it.
export const isNameOfOne = (column) => NAMES.test(column);
const NAMES = /(^|_)(pid|tid|thread|correlation|rank|step|device|stream)$/;
export const formatCell = (column, value, unit) => (unit === 'count' && Number.isInteger(value) && NAMES.test(column)
  ? String(value) : formatValue(value, unit));

// "step_p95_ns" is "step p95".
const UNIT_WORDS = {ns: '', bytes: '', percent: ' %', gb_per_s: ' GB/s'};
export const headingOf = (column) => column.replace(/^percent_of/, '%_of')
    .replace(/(^|_)(ns|bytes|percent|gb_per_s)$/, (all, before, unit) => UNIT_WORDS[unit])
  .replace('flops_per_second', 'FLOP/s').replace(/_/g, ' ').trim() || column;

// As the text reports cut it: no two names of a page look alike.
export const shortName = (name) => (page.short_names || {})[name] || name;
// Beside a row of a picture: "rank 3", or how a file begins.
export const labelOf = (rank) => (rank.name.length <= 9 ? rank.name : `${rank.name.slice(0, 8)}…`);
export const plural = (count, noun) => `${noun}${count === 1 ? '' : 's'}`;
// Round numbers of bytes: 512 MiB, not 477.
export const byteTicks = (most, count) => {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, most) / count));
  return d3.range(0, most + 1, step);
};
export const cut = (text, length) => (text.length <= length ? text
  : `${text.slice(0, Math.ceil((length - 1) / 2))}…${text.slice(text.length - Math.floor((length - 1) / 2))}`);
