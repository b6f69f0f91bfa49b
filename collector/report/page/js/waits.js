// Who waits for whom: the ranks that hold up the others, and a matrix of all pairs.
import {hasTable, page, selection, tableOf} from './begin.js';
import {canvasIn, cell, cssColour, el, emptySection, hideTip, notesOf, section, showTip} from './dom.js';

export const pairMatrix = (measure, options) => {
  const pairs = tableOf('rank-pairs');
  const names = [...new Set(pairs.rowsWhere(() => true)
      .flatMap((row) => [pairs.at(row, 'rank'), pairs.at(row, 'other_rank')]))].sort((a, b) => a - b);
  const place = new Map(names.map((name, i) => [name, i]));
  const byPlace = new Map();
  for (const row of pairs.rowsWhere(() => true)) byPlace.set(place.get(pairs.at(row, 'rank')) * names.length +
      place.get(pairs.at(row, 'other_rank')), row);
  const most = d3.max([...byPlace.values()], (row) => pairs.at(row, measure)) || 1;
  const margin = {left: 46, top: 28};
  const size = Math.max(4, Math.min(40, Math.floor(300 / names.length)));
  const height = margin.top + size * names.length + 4;
  // Pairs without a rank of the selection are dimmed.
  const isSelected = names.map((name) => page.steps.findIndex((of) => of.rank === name))
      .map((row) => () => row < 0 || selection.hasRank(row));
  const paint = (context) => {
    const paper = cssColour('--sunken');
    const ink = d3.interpolateRgb(paper, cssColour(options.colour));
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const every = Math.ceil(16 / size);
    names.forEach((name, i) => {
      if (i % every !== 0) return;
      context.fillStyle = cssColour('--muted');
      context.textAlign = 'right';
      context.fillText(String(name), margin.left - 6, margin.top + (i + 0.5) * size);
      context.textAlign = 'center';
      context.fillText(String(name), margin.left + (i + 0.5) * size, margin.top - 8);
    });
    for (let r = 0; r < names.length; ++r) {
      for (let c = 0; c < names.length; ++c) {
        const row = byPlace.get(r * names.length + c);
        const value = row === undefined ? 0 : pairs.at(row, measure) || 0;
        context.globalAlpha = isSelected[r]() || isSelected[c]() ? 1 : 0.25;
        context.fillStyle = r === c ? 'transparent' : ink(value === 0 ? 0 : 0.08 + 0.92 * Math.sqrt(value / most));
        context.fillRect(margin.left + c * size, margin.top + r * size, size - 1, size - 1);
      }
    }
    context.globalAlpha = 1;
  };
  const canvas = canvasIn(height, paint, {role: 'img', 'aria-label': options.label});
  selection.onChange(() => canvas.redraw());
  canvas.holder.style.width = `${margin.left + size * names.length + 4}px`;
  const at = (event) => {
    const box = canvas.canvas.getBoundingClientRect();
    const r = Math.floor((event.clientY - box.top - margin.top) / size);
    const c = Math.floor((event.clientX - box.left - margin.left) / size);
    return r < 0 || c < 0 || r >= names.length || c >= names.length ? undefined : byPlace.get(r * names.length + c);
  };
  canvas.canvas.addEventListener('pointermove', (event) => {
    const row = at(event);
    if (row === undefined) return void hideTip();
    showTip(event.clientX, event.clientY, options.tell(pairs, row));
  });
  canvas.canvas.addEventListener('pointerleave', hideTip);
  return el('figure', {class: 'matrix'}, el('figcaption', {}, options.caption), canvas.holder);
};

export const waitsSection = () => {
  const stragglers = tableOf('stragglers');
  const question = 'a rank that comes last to a collective holds up the others';
  if (stragglers.count === 0) return emptySection('waits', 'Who waits for whom', question,
      stragglers.notes[0] || 'No collective with two traced ranks.');
  const most = stragglers.at(0, 'caused_wait_ns') || 1;
  const bars = el('tbody');
  const whereOf = (row) => [['most_in', 'most in '], ['program_line', 'at ']]
      .filter(([column]) => stragglers.has(column) && stragglers.at(row, column))
      .map(([column, before]) => el('span', {class: 'rest'}, before, cell(stragglers, row, column)));
  const draw = () => bars.replaceChildren(...stragglers.rowsWhere(() => true).slice(0, 16).map((row) => {
    const rank = stragglers.at(row, 'rank');
    const place = page.steps.findIndex((of) => of.rank === rank);
    return el('tr', {class: selection.active && place >= 0 && !selection.hasRank(place) ? 'dim' : null},
      el('th', {scope: 'row', class: 'text'}, 'rank ', cell(stragglers, row, 'rank')),
      el('td', {class: 'bar'}, el('span',
          {style: {width: `${(100 * stragglers.at(row, 'caused_wait_ns')) / most}%`,
          background: 'var(--cause-exposed-wait)'}})),
      el('td', {}, cell(stragglers, row, 'caused_wait_ns')), el('td', {}, cell(stragglers, row, 'step_percent')),
      el('td', {}, cell(stragglers, row, 'last_arrivals'), ' of ', cell(stragglers, row, 'collectives')),
      el('td', {class: 'text'}, cell(stragglers, row, 'kind')),
      el('td', {class: 'text'}, stragglers.at(row, 'cause') === null ? ''
          : [cell(stragglers, row, 'cause'), ' +', cell(stragglers, row, 'excess_ns')], whereOf(row)));
  }));
  selection.onChange(draw);
  draw();
  const tell = (pairs, row) => [el('strong', {}, 'rank ', cell(pairs, row, 'rank'), ' waits for rank ',
      cell(pairs, row, 'other_rank')), el('br'),
    cell(pairs, row, 'wait_ns'), ' in ', cell(pairs, row, 'waits'), ' of ', cell(pairs, row, 'collectives'),
        ' collectives'];
  return section('waits', 'Who waits for whom', question, null, el('div', {class: 'columns wide-left'},
    el('div', {class: 'scroll'}, el('table', {},
        el('thead', {}, el('tr', {}, ['rank', '', 'others wait', 'of a step', 'comes last', 'kind',
        'because of'].map((text, i) =>
      el('th', {scope: 'col', class: i === 0 || i > 4 ? 'text' : null}, text)))), bars)),
    hasTable('rank-pairs') ? pairMatrix('wait_ns',
        {colour: '--cause-exposed-wait', label: 'who waits for whom',
        caption: 'the rank of a row waits for the rank of a column', tell}) : null),
  notesOf(stragglers));
};
