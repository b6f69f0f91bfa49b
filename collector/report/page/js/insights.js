// Every finding, with what to do about it and where its evidence is.
import {page, selection, tableOf} from './begin.js';
import {cell, el, emptySections, notesOf, section} from './dom.js';

const EVIDENCE = [[/memory-bound|tensor-core/, ['roofline', 'kernels']], [/unbalanced/, ['heatmap']],
    [/straggler|uneven/, ['waits', 'heatmap']], [/comm|overlap|collective/, ['comm']],
    [/memory|allocation|pageable|hidden-cop/, ['memory']],
  [/data-load|host|launch|sync|gap|pause|latency|default-stream|transfer|recompil/, ['lanes']],
      [/kernel|shape|math|layout|optimizer/, ['kernels', 'ops']], [/./, []]];
const evidenceOf = (rule) => [...EVIDENCE.find(([pattern]) => pattern.test(rule))[1], 'waterfall']
    .find((id) => !emptySections.has(id));
export const insightsSection = () => {
  const insights = tableOf('insights');
  const question = 'the largest saving first: what a step could be shorter at most';
  const cards = insights.rowsWhere(() => true).map((row) => {
    const target = evidenceOf(insights.at(row, 'rule')) || 'verdict';
    const rank = insights.at(row, 'rank');
    return el('li', {id: `insight-${row}`}, el('h3', {}, cell(insights, row, 'rule'),
      insights.at(row, 'saving_ns') === null ? null
          : el('span', {class: 'saving'}, 'saves up to ', cell(insights, row, 'saving_ns'),
          insights.at(row, 'saving_percent') === null ? '' : [' (', cell(insights, row, 'saving_percent'), ')'])),
    el('p', {}, cell(insights, row, 'finding')), el('p', {class: 'advice'}, cell(insights, row, 'advice')),
    el('p', {class: 'why'}, rank === null ? null
        : ['rank ', cell(insights, row, 'rank'),
        insights.at(row, 'ranks') > 1 ? [', on ', cell(insights, row, 'ranks'), ' ranks'] : '', ' · '],
        insights.at(row, 'where') ? [cell(insights, row, 'where'), ' · '] : null,
        el('a', {href: `#${target}`}, `evidence: ${target}`)),
    insights.at(row, 'command') ? el('p', {class: 'why'}, el('code', {}, insights.at(row, 'command'))) : null);
  });
  // A finding is of its rank's counted steps: those of other ranks than the selection's are dimmed.
  const dim = () => insights.rowsWhere(() => true).forEach((row, i) => {
    const place = page.steps.findIndex((of) => of.rank === insights.at(row, 'rank'));
    const outside = selection.active && insights.at(row, 'rank') !== null && insights.at(row, 'ranks') < 2 &&
        place >= 0 && !selection.hasRank(place);
    cards[i].classList.toggle('dim', outside);
  });
  selection.onChange(dim);
  return section('insights', 'Insights', question, 'selection',
      cards.length === 0 ? el('p', {class: 'empty'}, 'No rule fired.') : el('ol', {class: 'insights'}, cards),
      notesOf(insights));
};
