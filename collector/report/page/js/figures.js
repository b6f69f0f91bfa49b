// Key figures, and the waterfall of the mean step.
import {page, selection, tableOf} from './begin.js';
import {formatNs, formatPercent, plural} from './units.js';
import {CAUSE_MEANING, causeColour, causeVar, cell, el, emptySection, inkOn, notesOf, repaints, section, withTip} from
  './dom.js';

const figure = (label, column, detail) => {
  const figures = tableOf('key-figures');
  if (!figures.has(column)) return null;
  return el('div', {class: 'figure'}, el('dt', {}, label),
      el('dd', {}, cell(figures, 0, column, {class: 'big'}), detail ? el('small', {}, detail) : null));
};
export const figuresSection = () => {
  const figures = tableOf('key-figures');
  const of = (column) => cell(figures, 0, column);
  return section('figures', 'Key figures', 'after the warm-up, over all ranks', 'all', el('dl', {class: 'figures'},
    figure('Step, median', 'step_median_ns',
        ['of ', of('steps'), ` ${plural(figures.at(0, 'steps'), 'step')} × `, of('ranks'),
        ` ${plural(figures.at(0, 'ranks'), 'rank')}`]),
    figure('Step, p95', 'step_p95_ns', ['longest ', of('step_max_ns')]),
    figure('MFU', 'mfu_percent', figures.has('samples_per_second') ? [of('samples_per_second'), ' samples/s'] : null),
    figure('Devices busy', 'busy_percent', 'of the mean step'),
    figure('Exposed communication', 'exposed_comm_percent', ['waiting: ', of('exposed_wait_percent')]),
    figure('Peak memory', 'peak_bytes',
        [figures.at(0, 'peak_device') || '',
        figures.at(0, 'peak_rank') === null ? '' : [' on rank ', of('peak_rank')]].flat())));
};

// The mean of what is selected, from the steps' causes; null: nothing is selected.
const selectedCauses = () => {
  if (!selection.active) return null;
  const sums = new Map();
  let steps = 0;
  page.steps.forEach((rank, r) => {
    if (!selection.hasRank(r)) return;
    const warm = new Set(rank.warm_up);
    for (let i = 0; i < rank.us.length; ++i) {
      if (!selection.hasStep(i) || warm.has(i)) continue;
      ++steps;
      for (const [cause, us] of Object.entries(rank.causes)) sums.set(cause, (sums.get(cause) || 0) + us[i]);
    }
  });
  if (steps === 0) return null;
  return [...sums].map(([cause, us]) => [cause, (us / steps) * 1000]);
};

export const waterfallSection = () => {
  const waterfall = tableOf('waterfall');
  const question = 'where the mean step went: causes that exclude each other and add up';
  if (waterfall.count === 0) return emptySection('waterfall', 'Where a step goes', question,
      'No step was found. Steps come from an optimizer (--level full), a ProfilerStep or a repeating NVTX range.');
  const rows = waterfall.rowsWhere((row) => waterfall.at(row, 'mean_ns') > 0);
  // The longest bar fills its column: the number beside it says the share.
  const most = d3.max(rows, (row) => waterfall.at(row, 'share_percent') || 0) || 100;
  const bar = el('div', {class: 'stack', role: 'img', 'aria-label': 'the mean step by cause'});
  const list = el('tbody');
  const draw = () => {
    const selected = selectedCauses();
    const parts = selected || rows.map((row) => [waterfall.at(row, 'cause'), waterfall.at(row, 'mean_ns')]);
    const whole = parts.reduce((sum, part) => sum + part[1], 0);
    bar.replaceChildren(...parts.filter((part) => part[1] > 0).map(([cause, ns]) => withTip(
      el('span', {tabindex: '0', style: {flexGrow: String(ns), background: causeVar(cause)}},
        ns / whole > 0.07 ? el('b', {style: {color: inkOn(causeColour(cause))}}, cause) : null),
      () => [el('strong', {}, cause), ` ${formatNs(ns)} (${formatPercent(100 * ns / whole)})`, el('br'),
          CAUSE_MEANING[cause] || ''])));
    list.replaceChildren(...rows.map((row) => {
      const cause = waterfall.at(row, 'cause');
      const ns = selected ? (selected.find((part) => part[0] === cause) || [0, 0])[1] : null;
      return el('tr', {}, el('th', {scope: 'row', class: 'text', title: CAUSE_MEANING[cause] || null},
          el('i', {class: 'swatch', style: {background: causeVar(cause)}}), cause),
        el('td', {}, cell(waterfall, row, 'mean_ns')), el('td', {}, cell(waterfall, row, 'share_percent')),
        el('td', {class: 'bar'}, el('span',
            {style: {width: `${100 * (waterfall.at(row, 'share_percent') || 0) / most}%`, background: causeVar(cause)}})),
        el('td', {}, cell(waterfall, row, 'least_ns'), ' – ', cell(waterfall, row, 'most_ns')),
        el('td', {}, waterfall.at(row, 'most_rank') === null ? '–' : ['rank ', cell(waterfall, row, 'most_rank')]),
        el('td', {class: 'extra'}, ns === null ? '' : formatNs(ns)));
    }));
    selectedHead.textContent = selected ? 'selection' : '';
  };
  const selectedHead = el('th', {scope: 'col'});
  selection.onChange(draw);
  repaints.push(draw);
  draw();
  return section('waterfall', 'Where a step goes', question, 'selection', bar,
    el('div', {class: 'scroll'}, el('table', {class: 'waterfall'},
        el('thead', {}, el('tr', {}, ['cause', 'mean', 'share', '', 'least – most', 'most on'].map((text, i) =>
      el('th', {scope: 'col', class: i === 0 ? 'text' : null}, text)), selectedHead)), list)), notesOf(waterfall));
};
