// How near to the device's ceilings kernels and modules come.
import {tableOf} from './begin.js';
import {cut, formatCount, formatFlops, shortName} from './units.js';
import {cell, el, emptySection, section} from './dom.js';
import {dataTable} from './tables.js';
import {logScatter} from './comm.js';

export const rooflineSection = () => {
  const roofline = tableOf('roofline');
  const question = 'arithmetic per byte against arithmetic per second, below the device’s ceilings';
  const advice = roofline.notes[0] ||
      'A roofline needs FLOPs and bytes of kernels: record with --level full, which counts the FLOPs of PyTorch’s operators.';
  if (roofline.count === 0) return emptySection('roofline', 'Roofline', question, advice);
  const name = [...roofline.columns.keys()].find((column) => roofline.unit(column) === 'text' && roofline.has(column));
  const rows = roofline.rowsWhere((row) => roofline.at(row, 'intensity') > 0 &&
      roofline.at(row, 'flops_per_second') > 0);
  const longest = d3.max(rows, (row) => roofline.at(row, 'time_ns') || 0) || 1;
  // Of a device without known ceilings nothing is bound by one.
  const isKnown = roofline.rowsWhere((row) => roofline.at(row, 'bound') !== 'unknown').length > 0;
  const points = rows.map((row) =>
      ({x: roofline.at(row, 'intensity'), y: roofline.at(row, 'flops_per_second'),
      roof: roofline.at(row, 'roof_flops_per_second'),
    r: 3 + 9 * Math.sqrt((roofline.at(row, 'time_ns') || 0) / longest),
        colour: /^(HBM|L2)$/.test(roofline.at(row, 'bound')) ? '--series-2' : '--series-1',
    tell: () => [el('strong', {}, cut(roofline.at(row, name) || '', 80)), el('br'),
        cell(roofline, row, 'flops_per_second'), ' FLOP/s at ', cell(roofline, row, 'intensity'), ' FLOP/byte',
        el('br'),
      roofline.at(row, 'percent_of_roof') === null ? 'no roof is known'
          : [cell(roofline, row, 'percent_of_roof'), ' of its roof, bound by ', cell(roofline, row, 'bound')]]}));
  const roofs = points.filter((point) => point.roof > 0);
  const background = (svg, x, y) => {
    for (const point of roofs) {
      svg.append('line').attr('class', 'to-roof').attr('x1', x(point.x)).attr('x2', x(point.x)).attr('y1', y(point.y))
          .attr('y2', y(point.roof));
      svg.append('line').attr('class', 'ceiling').attr('x1', x(point.x) - 7).attr('x2', x(point.x) + 7)
          .attr('y1', y(point.roof)).attr('y2', y(point.roof));
    }
  };
  return section('roofline', 'Roofline', question, 'all',
      points.length === 0 ? null : el('p', {class: 'hint'},
      'A point is as large as its time; the mark above it is its own roof.'),
      points.length === 0 ? null : logScatter(points,
      {label: 'roofline', nameX: 'FLOP / byte', nameY: 'FLOP/s', formatX: formatCount, formatY: formatFlops,
      ceilings: roofs.map((point) => ({y: point.roof})), background}),
    dataTable(roofline, {noun: 'rows', shorten: shortName,
        columns: [name, 'calls', 'time_ns', 'share_percent', 'flops', 'moved_bytes', 'intensity', 'flops_per_second',
        'gb_per_s', 'percent_of_roof', ...(isKnown ? ['bound'] : [])]}).element);
};
