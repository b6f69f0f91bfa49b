// What ranks exchange, and how fast, by size.
import {page, selection, tableOf} from './begin.js';
import {formatBytes, formatCount} from './units.js';
import {cell, el, emptySection, section, withTip} from './dom.js';
import {dataTable} from './tables.js';
import {pairMatrix} from './waits.js';
import {followSelection, selectionColumn, timesInSelection} from './kernels.js';

const TYPE_COLOURS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5', '--series-6'];

export const logScatter = (points, options) => {
  const height = 300;
  const margin = {left: 58, right: 14, top: 12, bottom: 38};
  const svg = d3.create('svg').attr('class', 'plot').attr('role', 'img').attr('aria-label', options.label);
  const holder = el('div', {class: 'plot-holder', style: {height: `${height}px`}}, svg.node());
  const draw = () => {
    const width = holder.clientWidth;
    if (width === 0) return;
    svg.attr('width', width).attr('height', height).selectAll('*').remove();
    const wide = (values) => {
      const [low, high] = d3.extent(values);
      return [low / 1.8, high * 1.8];
    };
    const x = d3.scaleLog().domain(wide(points.map((point) => point.x))).range([margin.left, width - margin.right]);
    const y = d3.scaleLog().domain(wide([...points.map((point) => point.y),
        ...(options.ceilings || []).map((line) => line.y)])).range([height - margin.bottom, margin.top]);
    const powersOfTwo = (scale, room) => {
      const [low, high] = scale.domain().map(Math.log2);
      const step = Math.max(1, Math.ceil((high - low) / room));
      return d3.range(Math.ceil(low), high, step).map((power) => 2 ** power);
    };
    const decades = (scale, room) => {
      const ticks = scale.ticks().filter((tick) => Number.isInteger(Math.log10(tick) + 1e-9) ||
          Math.abs(Math.log10(tick) - Math.round(Math.log10(tick))) < 1e-6);
      return ticks.length >= 2 ? ticks.filter((_, i) => i % Math.ceil(ticks.length / room) === 0)
          : scale.ticks(3).filter((_, i, all) => i % Math.ceil(all.length / 3) === 0);
    };
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(x).tickValues((options.formatX === formatBytes ? powersOfTwo : decades)(x,
        Math.floor(width / 90))).tickFormat(options.formatX));
    svg.append('g').attr('class', 'axis grid').attr('transform', `translate(${margin.left},0)`)
        .call(d3.axisLeft(y).tickValues(decades(y, 6)).tickFormat(options.formatY)
        .tickSize(-(width - margin.left - margin.right)));
    svg.append('text').attr('class', 'axis-name').attr('x', width - margin.right).attr('y', height - 4)
        .attr('text-anchor', 'end').text(options.nameX);
    svg.append('text').attr('class', 'axis-name').attr('x', 4).attr('y', 10).text(options.nameY);
    if (options.background) options.background(svg, x, y, width, height, margin);
    svg.append('g').selectAll('circle').data(points).enter().append('circle').attr('tabindex', 0)
        .attr('cx', (point) => x(point.x)).attr('cy', (point) => y(point.y))
      .attr('r', (point) => point.r || 5).style('fill', (point) => `var(${point.colour})`)
          .each(function addTip(point) { withTip(this, point.tell); });
    dim();
  };
  // Points that say of themselves that the selection has nothing of them.
  const dim = () => svg.selectAll('circle')
      .classed('dim', (point) => point.isOutside !== undefined && point.isOutside());
  new ResizeObserver(draw).observe(holder);
  selection.onChange(dim);
  return holder;
};

export const commSection = () => {
  const comm = tableOf('comm');
  const question = 'collectives by group, type and size; busbw as nccl-tests count it';
  if (comm.count === 0) return emptySection('comm', 'Communication', question, comm.notes[0] || 'No collective ran.');
  const types = [...new Set(comm.rowsWhere(() => true).map((row) => comm.at(row, 'type')))];
  const colourOf = (type) => TYPE_COLOURS[types.indexOf(type) % TYPE_COLOURS.length];
  const key = (group, type, bytes) => JSON.stringify([group, type, bytes]);
  const times = timesInSelection(page.times.collectives, (call) => key(call.group, call.type, call.bytes));
  const keyOf = (row) => key(comm.at(row, 'group'), comm.at(row, 'type'), comm.at(row, 'bytes'));
  const points = comm.rowsWhere((row) => comm.at(row, 'bytes') > 0 && comm.at(row, 'busbw_gb_per_s') > 0)
      .map((row) => ({
    x: comm.at(row, 'bytes'), y: comm.at(row, 'busbw_gb_per_s'),
        r: 4 + Math.min(6, Math.log10(comm.at(row, 'calls') + 1) * 2), colour: colourOf(comm.at(row, 'type')),
    isOutside: () => times.of(keyOf(row)) === 0,
    tell: () => [el('strong', {}, `${comm.at(row, 'type')}, ${comm.at(row, 'group')}`), el('br'),
        cell(comm, row, 'bytes'), ', ', cell(comm, row, 'calls'), ' calls', el('br'),
      'busbw ', cell(comm, row, 'busbw_gb_per_s'), ' GB/s, algbw ', cell(comm, row, 'algbw_gb_per_s'), ' GB/s'],
  }));
  const pairs = tableOf('rank-pairs');
  const measure = pairs.has('bytes') ? 'bytes' : 'transfer_ns';
  const tell = (table, row) => [el('strong', {}, 'ranks ', cell(table, row, 'rank'), ' and ',
      cell(table, row, 'other_rank')), el('br'),
    cell(table, row, 'collectives'), ' collectives',
        table.at(row, 'bytes') === null ? '' : [', ', cell(table, row, 'bytes')], el('br'), 'transfer ',
        cell(table, row, 'transfer_ns')];
  const matrix = pairs.count === 0 ? null
      : pairMatrix(measure, {colour: '--cause-exposed-transfer', label: 'what ranks exchange',
    caption: `whole run: ${measure === 'bytes' ? 'bytes' : 'time'} in collectives that both ranks are in`, tell});
  const scatter = points.length === 0
      ? el('p', {class: 'empty'}, 'No call says both its size and a duration that is transfer alone.')
    : el('figure', {}, el('figcaption', {},
        'bandwidth by size: a point is all calls of a size, dimmed where the selection has none'),
        el('ul', {class: 'legend'}, types.map((type) =>
        el('li', {}, el('i', {style: {background: `var(${colourOf(type)})`}}), type))),
      logScatter(points, {label: 'bandwidth by size', nameX: 'size of a call', nameY: 'busbw, GB/s',
          formatX: formatBytes, formatY: (value) => formatCount(value)}));
  const extra = selectionColumn(times, keyOf);
  const table = dataTable(comm, {noun: 'collectives', extra,
      columns: ['type', 'group', 'bytes', 'calls', 'group_size', 'transfer_ns', 'wait_ns', 'exposed_ns',
      'algbw_gb_per_s', 'busbw_gb_per_s', 'last_rank', 'last_percent']});
  followSelection(table);
  return section('comm', 'Communication', question, 'selection',
      el('div', {class: 'columns wide-right'}, matrix, el('div', {}, scatter)),
    table.element);
};
