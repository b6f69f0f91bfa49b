// Memory by category over time, and what held it at the peak.
import {page, selection, tableOf} from './begin.js';
import {byteTicks, formatBytes, plural} from './units.js';
import {cell, el, emptySection, hideTip, section, showTip} from './dom.js';
import {dataTable} from './tables.js';
import {stepRows} from './heatmap.js';
import {formatTick} from './lanes.js';
import {noteView, remember} from './view_state.js';

const CATEGORIES = [['parameter', '--series-1'], ['optimizer_state', '--series-2'], ['gradient', '--series-3'],
    ['activation', '--series-4'],
  ['temporary', '--series-5'], ['input', '--series-6'], ['autograd_detail', '--series-7'], ['unknown', '--series-8']];

// What the trace has no allocation of, and the peak counts.
const BASE = ['allocated before the trace', '--cause-not-recorded'];

// From the first selected step's start to the last one's end, of the ranks that are selected; null: nothing is.
const selectedTime = () => {
  if (!selection.active) return null;
  const steps = tableOf('steps');
  const first = stepRows();
  let [start, end] = [Infinity, -Infinity];
  page.steps.forEach((rank, r) => {
    if (!selection.hasRank(r)) return;
    for (let i = selection.steps[0]; i <= Math.min(selection.steps[1], rank.us.length - 1); ++i) {
      start = Math.min(start, steps.at(first[r] + i, 'start_ns'));
      end = Math.max(end, steps.at(first[r] + i, 'start_ns') + steps.at(first[r] + i, 'total_ns'));
    }
  });
  return start <= end ? [start, end] : null;
};

const memoryCurve = (table, memory) => {
  const height = 260;
  const margin = {left: 66, right: 12, top: 14, bottom: 26};
  const svg = d3.create('svg').attr('class', 'plot').attr('role', 'img')
      .attr('aria-label', 'memory over time by category');
  const holder = el('div', {class: 'plot-holder', style: {height: `${height}px`}}, svg.node());
  let rows = [];
  let peak = null;
  let base = 0;
  const draw = () => {
    const width = holder.clientWidth;
    if (width === 0 || rows.length === 0) return;
    svg.attr('width', width).attr('height', height).selectAll('*').remove();
    const used = CATEGORIES.filter(([name]) => table.has(`${name}_bytes`) &&
        rows.some((row) => table.at(row, `${name}_bytes`) > 0));
    const x = d3.scaleLinear().domain(d3.extent(rows, (row) => table.at(row, 'time_ns')))
        .range([margin.left, width - margin.right]);
    const y = d3.scaleLinear().domain([0, (base + (d3.max(rows, (row) => table.at(row, 'bytes')) || 1)) * 1.08])
        .range([height - margin.bottom, margin.top]);
    svg.append('g').attr('class', 'axis grid').attr('transform', `translate(${margin.left},0)`)
        .call(d3.axisLeft(y).tickValues(byteTicks(y.domain()[1], 5)).tickFormat(formatBytes)
        .tickSize(-(width - margin.left - margin.right)));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 130)))
        .tickFormat((ns) => formatTick(ns, x.domain()[1] - x.domain()[0])));
    const bands = base > 0 ? [BASE, ...used] : used;
    const layers = d3.stack().keys(bands.map(([name]) => name))
        .value((row, name) => (name === BASE[0] ? base : table.at(row, `${name}_bytes`) || 0))(rows);
    const area = d3.area().x((point) => x(table.at(point.data, 'time_ns'))).y0((point) => y(point[0]))
        .y1((point) => y(point[1])).curve(d3.curveStepAfter);
    svg.append('g').selectAll('path').data(layers).enter().append('path').attr('d', area)
        .style('fill', (layer) => `var(${bands[layer.index][1]})`);
    const reach = selectedTime();
    if (reach !== null) {
      const [left, right] = reach.map((time) => Math.max(x.range()[0], Math.min(x.range()[1], x(time))));
      svg.append('rect').attr('class', 'selected-time').attr('x', left).attr('width', Math.max(1, right - left))
          .attr('y', margin.top).attr('height', height - margin.top - margin.bottom);
    }
    if (peak !== null && memory.at(peak, 'peak_at_ns') !== null) {
      const at = Math.max(x.range()[0], Math.min(x.range()[1], x(memory.at(peak, 'peak_at_ns'))));
      const mark = svg.append('g').attr('class', 'peak').attr('transform', `translate(${at},0)`);
      mark.append('line').attr('y1', margin.top).attr('y2', height - margin.bottom);
      mark.append('text').attr('x', at > width / 2 ? -5 : 5).attr('y', margin.top + 2)
          .attr('text-anchor', at > width / 2 ? 'end' : 'start')
          .text(`peak ${formatBytes(memory.at(peak, 'peak_bytes'))}`);
    }
    const ruler = svg.append('line').attr('class', 'ruler').attr('y1', margin.top).attr('y2', height - margin.bottom)
        .style('display', 'none');
    svg.on('pointermove', () => {
      const time = x.invert(d3.mouse(svg.node())[0]);
      const i = Math.max(0, d3.bisector((row) => table.at(row, 'time_ns')).right(rows, time) - 1);
      const row = rows[i];
      ruler.style('display', null).attr('x1', x(table.at(row, 'time_ns'))).attr('x2', x(table.at(row, 'time_ns')));
      showTip(d3.event.clientX, d3.event.clientY,
          el('strong', {}, cell(table, row, 'bytes'), ' at ', cell(table, row, 'time_ns')),
        base > 0 ? el('div', {}, `and ${formatBytes(base)} allocated before the trace`) : null,
        used.slice().reverse().filter(([name]) => table.at(row, `${name}_bytes`) > 0)
            .map(([name, colour]) => el('div', {}, el('i', {class: 'swatch', style: {background: `var(${colour})`}}),
            `${name.replace(/_/g, ' ')} `, cell(table, row, `${name}_bytes`))));
    }).on('pointerleave', () => { ruler.style('display', 'none'); hideTip(); });
    key.replaceChildren(...bands.map(([name, colour]) =>
        el('li', {}, el('i', {style: {background: `var(${colour})`}}), name.replace(/_/g, ' '))));
  };
  const key = el('ul', {class: 'legend'});
  new ResizeObserver(draw).observe(holder);
  selection.onChange(draw);
  return {element: el('div', {}, key, holder), show: (wanted, at, before) => {
    rows = wanted;
    peak = at;
    base = before;
    draw();
  }};
};

export const memorySection = () => {
  const memory = tableOf('memory');
  const over = tableOf('memory-over-time');
  const peak = tableOf('memory-peak');
  const question = 'what held it, by category, and what held the peak';
  if (memory.count === 0) return emptySection('memory', 'Memory', question,
      memory.notes[0] || 'No allocation was recorded: --level full records PyTorch’s allocators.');
  const keyOf = (table, row) => `${table.at(row, 'rank')}|${table.at(row, 'device')}`;
  // What holds memory is known of allocators alone.
  const allocators = memory.rowsWhere((row) => !memory.at(row, 'allocator').startsWith('the whole process'));
  const picks = allocators.length > 0 ? allocators : memory.rowsWhere(() => true);
  const curve = over.count > 0 ? memoryCurve(over, memory) : null;
  const holders = el('div');
  const pick = el('select', {'aria-label': 'rank and device', onchange: (event) => {
    show(Number(event.target.value));
    noteView();
  }},
      picks.map((row) =>
    el('option', {value: String(row)},
        `${memory.at(row, 'rank') === null ? '' : `rank ${memory.at(row, 'rank')}, `}${memory.at(row, 'device')}`)));
  const show = (row) => {
    const key = keyOf(memory, row);
    const rows = peak.rowsWhere((at) => keyOf(peak, at) === key);
    const before = rows.find((at) => /allocated before the trace/.test(peak.at(at, 'held_by')));
    if (curve !== null) curve.show(over.rowsWhere((at) => keyOf(over, at) === key), row,
        before === undefined ? 0 : peak.at(before, 'bytes'));
    holders.replaceChildren(el('h3', {}, 'Held at the peak of ', cell(memory, row, 'peak_bytes')),
        el('div', {class: 'scroll'}, el('table', {}, el('tbody', {}, rows.slice(0, 12).map((at) => {
      const category = CATEGORIES.find(([name]) => name.replace(/_/g, ' ') === peak.at(at, 'held_by'));
      return el('tr', {}, el('th', {scope: 'row', class: 'text'}, cell(peak, at, 'held_by')),
          el('td', {class: 'bar'}, el('span',
          {style: {width: `${peak.at(at, 'share_percent')}%`,
          background: `var(${category ? category[1] : '--series-8'})`}})),
        el('td', {}, cell(peak, at, 'bytes')), el('td', {}, cell(peak, at, 'share_percent')),
            el('td', {}, peak.at(at, 'blocks') === null ? ''
            : [cell(peak, at, 'blocks'), ` ${plural(peak.at(at, 'blocks'), 'block')}`]));
    })))));
  };
  const most = picks.reduce((a, b) => ((memory.at(a, 'peak_bytes') || 0) >= (memory.at(b, 'peak_bytes') || 0) ? a : b));
  pick.value = String(most);
  show(most);
  remember('memory', () => (pick.value === String(most) ? null : pick.value), (row) => {
    pick.value = picks.includes(Number(row)) && row !== null ? row : String(most);
    show(Number(pick.value));
  });
  const reach = el('p', {class: 'why', hidden: true},
      'The first rank of the selection, and all its time; the selected steps are marked.');
  selection.onChange(() => {
    reach.hidden = !selection.active;
    if (!selection.active) return;
    const rank = page.steps[selection.ranks[0]].rank;
    const row = picks.find((at) => memory.at(at, 'rank') === rank);
    if (row === undefined) return;
    pick.value = String(row);
    show(row);
  });
  return section('memory', 'Memory', question, 'selection', reach, el('div', {class: 'tools'}, pick),
      curve === null ? null : curve.element, holders,
    dataTable(memory, {noun: 'devices',
        columns: ['rank', 'device', 'allocator', 'peak_bytes', 'peak_reserved_bytes', 'at_end_bytes', 'allocations',
        'largest_bytes']}).element);
};
