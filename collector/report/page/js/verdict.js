// What the job lost most to, what to do next, and how far to trust it.
import {page, tableOf} from './begin.js';
import {cell, el, titleOf} from './dom.js';

const nextActions = () => {
  const insights = tableOf('insights');
  const rows = insights.rowsWhere((row) => insights.at(row, 'advice')).slice(0, 3);
  if (rows.length === 0) {
    const notes = tableOf('verdict').notes.slice(0, 3);
    return notes.length === 0 ? null
        : el('ol', {class: 'actions'}, notes.map((note) => el('li', {}, el('p', {}, note))));
  }
  return el('ol', {class: 'actions'}, rows.map((row) => el('li', {},
    el('p', {class: 'advice'}, cell(insights, row, 'advice')),
    el('p', {class: 'why'}, cell(insights, row, 'finding')),
    el('p', {class: 'why'}, el('a', {href: `#insight-${row}`}, insights.at(row, 'rule')),
      insights.at(row, 'saving_ns') === null ? null
          : [' saves up to ', cell(insights, row, 'saving_ns'), ' a step']))));
};

const trustLine = (state, ...content) =>
    el('li', {class: state}, el('span', {class: 'mark', 'aria-hidden': 'true'},
    state === 'good' ? '✓' : state === 'bad' ? '!' : 'i'),
  el('span', {}, content));

const lossLine = () => {
  const losses = tableOf('losses');
  if (losses.count === 0) return trustLine('good', 'No event was declared lost.');
  const rows = losses.rowsWhere(() => true).slice(0, 3);
  return trustLine('bad', 'Events are missing: ',
      rows.flatMap((row, i) => [i > 0 ? ', ' : '', cell(losses, row, 'events'),
      ` (${losses.at(row, 'reason')}${losses.at(row, 'rank') === null ? '' : `, rank ${losses.at(row, 'rank')}`})`]),
    losses.count > 3 ? ` and ${losses.count - 3} more kinds.` : '.');
};
const gapLine = () => {
  const gaps = tableOf('gaps');
  if (gaps.count === 0) return trustLine('good', 'Capture was on all the time.');
  const often = gaps.raw.rows === 1 ? 'once' : `${gaps.raw.rows} times`;
  const timed = gaps.rowsWhere((row) => gaps.at(row, 'duration_ns') !== null);
  if (timed.length === 0) return trustLine('note', `Capture was off ${often}, to the end (${gaps.at(0, 'reason')}).`);
  const longest = timed.reduce((a, b) => (gaps.at(a, 'duration_ns') >= gaps.at(b, 'duration_ns') ? a : b));
  return trustLine('note', `Capture was off ${often}; for `, cell(gaps, longest, 'duration_ns'),
      ` at the longest (${gaps.at(longest, 'reason')}).`);
};
const costLine = () => {
  const cost = tableOf('cost');
  const rows = cost.rowsWhere((row) => cost.at(row, 'hooks_percent') !== null);
  if (page.run.traces.every((trace) => !trace.ours)) return trustLine('note',
      'What recording cost is not known: another tool recorded this.');
  if (rows.length === 0) {
    const own = cost.rowsWhere((row) => cost.at(row, 'own_cpu_percent') !== null);
    if (own.length === 0) return trustLine('note', 'What recording cost was not measured.');
    const busiest = own.reduce((a, b) => (cost.at(a, 'own_cpu_percent') >= cost.at(b, 'own_cpu_percent') ? a : b));
    return trustLine('good', 'ranktap’s own threads took ', cell(cost, busiest, 'own_cpu_percent'),
        ' of a rank’s time at most; too few hooks ran to measure them.');
  }
  const most = rows.reduce((a, b) => (cost.at(a, 'hooks_percent') >= cost.at(b, 'hooks_percent') ? a : b));
  const unknown = cost.count - rows.length;
  return trustLine(cost.at(most, 'hooks_percent') > 5 ? 'bad' : unknown > 0 ? 'note' : 'good',
      'ranktap’s hooks cost a rank ', cell(cost, most, 'hooks_percent'), ' of its time at most',
      cost.at(most, 'rank') === null ? '.' : ` (rank ${cost.at(most, 'rank')}).`,
      unknown > 0 ? ` ${unknown} ${unknown === 1 ? 'rank' : 'ranks'} had too few timed events to tell.` : '');
};
const rankLine = () => {
  const ranks = tableOf('ranks');
  const broken = ranks.rowsWhere((row) => ranks.at(row, 'status') && !/^closed/.test(ranks.at(row, 'status')) &&
      page.run.traces[row] && page.run.traces[row].ours);
  if (page.run.traces.every((trace) => !trace.ours)) return trustLine('note',
      ranks.raw.rows === 1 ? 'One rank, recorded by another tool.'
      : `${ranks.raw.rows} ranks, recorded by another tool.`);
  if (broken.length === 0) return trustLine('good',
      `${ranks.raw.rows === 1 ? 'The only rank' : `All ${ranks.raw.rows} traced ranks`} ended well.`);
  return trustLine('bad', broken.slice(0, 4)
      .map((row) => `Rank ${ranks.at(row, 'rank')}: ${ranks.at(row, 'status')}. `));
};
const trustList = () => el('ul', {class: 'trust'},
  page.run.simulated ? trustLine('bad', 'The GPU is simulated: times mean nothing.') : null,
  rankLine(), lossLine(), gapLine(), costLine(),
  page.run.problems.slice(0, 3).map((problem) => trustLine('bad', problem)),
  page.notes.map((note) => trustLine('note', note)));

export const verdictSection = () => {
  const verdict = tableOf('verdict');
  return el('section', {id: 'verdict', class: 'card verdict', 'aria-labelledby': 'verdict-title'},
    el('h2', {id: 'verdict-title', class: 'sr'}, 'Verdict'),
    el('p', {class: 'sentence'}, titleOf(verdict)),
    el('div', {class: 'columns'},
      el('div', {}, el('h3', {}, 'Do this next'), nextActions() || el('p', {class: 'empty'}, 'Nothing stands out.')),
      el('div', {}, el('h3', {}, 'How far to trust it'), trustList())));
};
