// Two runs: what takes longer in the second.
import {page, ReportTable, tableOf} from './begin.js';
import {formatNs, formatPercent, shortName} from './units.js';
import {causeColour, causeVar, cell, el, inkOn, legend, section, titleOf, withTip} from './dom.js';
import {dataTable} from './tables.js';

const sideTables = (side) => new Map(Object.entries(side.tables)
    .map(([name, raw]) => [name, new ReportTable(name, raw)]));

// More of a time, of bytes or of waiting is worse; more of a busy device or of its peak is better.
const stateOf = (column, change) => (!(Math.abs(change) > 0) ? null
  : (change > 0) === /busy|mfu/.test(column) ? 'better' : 'worse');

// The step, and what changed most of each direction.
const sentenceOf = (diff) => {
  if (/\.$/.test(diff.title)) return titleOf(diff);
  const step = diff.rowsWhere((row) => diff.at(row, 'kind') === 'step')[0];
  if (step === undefined) return titleOf(diff);
  const change = diff.at(step, 'diff_ns');
  const sure = diff.at(step, 'significant') === 'yes' ? '' : ', which the noise of the steps explains';
  const most = (sign) => diff.rowsWhere((row) => row !== step && sign * diff.at(row, 'diff_ns') > 0 &&
      diff.at(row, 'significant') === 'yes')[0];
  const part = (row, word) => (row === undefined ? '' : `, ${formatNs(Math.abs(diff.at(row, 'diff_ns')))} ${word} in ${
    shortName(diff.at(row, 'name'))}`);
  if (change === 0) return ['A step takes as long as before.'];
  const share = diff.at(step, 'change_percent');
  return [`A step takes ${formatNs(Math.abs(change))}${share === null ? ''
    : ` (${formatPercent(Math.abs(share))})`} ${change > 0 ? 'more' : 'less'}`, sure, sure === '' ? [part(most(1), 'more'), part(most(-1), 'less')] : '', '.'];
};

export const diffPage = () => {
  const diff = tableOf('diff');
  const sides = [['before', page.before],
      ['after', page.after]].map(([name, side]) => ({name, run: side.run, tables: sideTables(side)}));
  const figureRows = [['step_median_ns', 'step, median'], ['step_p95_ns', 'step, p95'],
      ['busy_percent', 'devices busy'], ['exposed_comm_percent', 'exposed communication'], ['mfu_percent', 'MFU'],
      ['peak_bytes', 'peak memory']];
  const value = (side, column) => sides[side].tables.get('key-figures').at(0, column);
  const of = (side, column) => {
    const shown = cell(sides[side].tables.get('key-figures'), 0, column);
    shown.dataset.run = sides[side].name;
    return shown;
  };
  const change = (column) => {
    const [a, b] = [value(0, column), value(1, column)];
    if (a === null || b === null || a === 0) return el('td', {}, '–');
    const percent = (100 * (b - a)) / a;
    return el('td', {class: stateOf(column, percent)}, `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`);
  };
  const figures = section('figures', 'Key figures', 'before and after', null,
      el('div', {class: 'scroll'}, el('table', {},
      el('thead', {}, el('tr', {}, ['', 'before', 'after',
      'change'].map((text, i) => el('th', {scope: 'col', class: i === 0 ? 'text' : null}, text)))),
    el('tbody', {}, figureRows.filter(([column]) => value(0, column) !== null || value(1, column) !== null)
        .map(([column, text]) =>
      el('tr', {}, el('th', {scope: 'row', class: 'text'}, text), el('td', {}, of(0, column)),
          el('td', {}, of(1, column)), change(column)))))));
  const longest = d3.max(sides, (side) =>
      d3.sum(side.tables.get('waterfall').rowsWhere(() => true),
      (row) => side.tables.get('waterfall').at(row, 'mean_ns'))) || 1;
  const bars = sides.map((side) => {
    const waterfall = side.tables.get('waterfall');
    const whole = d3.sum(waterfall.rowsWhere(() => true), (row) => waterfall.at(row, 'mean_ns'));
    return el('div', {class: 'side'}, el('b', {}, side.name),
        el('div', {class: 'stack', style: {width: `${(100 * whole) / longest}%`}},
        waterfall.rowsWhere((row) => waterfall.at(row, 'mean_ns') > 0).map((row) => {
      const cause = waterfall.at(row, 'cause');
      return withTip(el('span', {tabindex: '0',
          style: {flexGrow: String(waterfall.at(row, 'mean_ns')), background: causeVar(cause)}},
          waterfall.at(row, 'mean_ns') / whole > 0.09
              ? el('b', {style: {color: inkOn(causeColour(cause))}}, cause) : null),
        () => [el('strong', {}, cause), ` ${formatNs(waterfall.at(row, 'mean_ns'))}`]);
    })), el('span', {}, formatNs(whole)));
  });
  const causes = [...new Set(sides.flatMap((side) => side.tables.get('waterfall').rowsWhere(() => true)
      .map((row) => side.tables.get('waterfall').at(row, 'cause'))))];
  const verdicts = el('section', {id: 'verdict', class: 'card verdict'}, el('h2', {class: 'sr'}, 'Verdict'),
      el('p', {class: 'sentence'}, sentenceOf(diff)),
    el('div', {class: 'columns'}, sides.map((side) =>
        el('div', {}, el('h3', {}, `${side.name}: ${side.run.path}`), el('p', {}, side.tables.get('verdict').title)))),
    page.notes.length === 0 ? null : el('ul', {class: 'notes'}, page.notes.map((note) => el('li', {}, note))));
  return [verdicts, figures, section('waterfall', 'Where a step goes', 'both mean steps at one scale', null,
      legend(causes), bars),
    section('changes', 'What changed', 'a step, in both runs', null,
        dataTable(diff, {noun: 'changes', search: true, shorten: shortName,
        classOf: (row, column) => (/^(diff_ns|change_percent)$/.test(column) ? stateOf('time', diff.at(row, column)) : null)}).element)];
};
