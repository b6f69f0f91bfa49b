// Stacks of Python, native code and operators, by the time below them.
import {page, selection} from './begin.js';
import {formatCount, formatNs} from './units.js';
import {choice, el, emptySection, searchField, section} from './dom.js';
import {hueOf, icicle} from './modules.js';
import {remember} from './view_state.js';

export const flameSection = () => {
  const flames = page.flames || {frames: [], stacks: []};
  const question = 'the program’s stacks, and what ran below them; click a part to see it alone';
  if (flames.stacks.length === 0) return emptySection('flame', 'Flame graph', question,
      'No stack was recorded: ranktap run --sample 10ms records where Python threads are, --stacks all what launched work.');
  const measures = [['gpu', 'GPU time', 3], ['host', 'host time', null],
    ['sampled', 'Python threads', 4], ['cpu', 'Python threads on a CPU', 5], ['count', 'count', 0]];
  const columns = new Map(measures.map(([measure, , column]) => [measure, column]));
  const valueOf = (weights, measure) =>
      (columns.get(measure) === null ? weights[1] + weights[2] : weights[columns.get(measure)]);
  // A stack's outermost frame is its rank, or its process where that has none.
  const isSelected = (frame) => {
    const place = page.steps.findIndex((of) => of.rank !== null && flames.frames[frame] === `rank ${of.rank}`);
    return place < 0 || selection.hasRank(place);
  };
  const treeOf = (measure) => {
    const root = {name: 'all', own: 0, whole: 0, children: new Map()};
    for (const [frames, weights] of flames.stacks) {
      const value = valueOf(weights, measure);
      if (!(value > 0) || (selection.active && !isSelected(frames[0]))) continue;
      let node = root;
      root.whole += value;
      for (const frame of frames) {
        if (!node.children.has(frame)) node.children.set(frame,
            {name: flames.frames[frame], own: 0, whole: 0, children: new Map()});
        node = node.children.get(frame);
        node.whole += value;
      }
      node.own += value;
    }
    const finish = (node) => ({...node, children: [...node.children.values()].map(finish)});
    return finish(root);
  };
  const usable = measures.filter(([measure]) => flames.stacks.some(([, weights]) => valueOf(weights, measure) > 0));
  if (usable.length === 0) return emptySection('flame', 'Flame graph', question, 'No stack has a time.');
  let measure = usable[0][0];
  const warm = (node) => `hsl(${14 + (hueOf(node.data.name) % 34)}, 58%, ${40 + (hueOf(node.data.name) % 3) * 4}%)`;
  const tell = (node) => [el('strong', {}, node.data.name), el('br'),
      measure === 'count' ? formatCount(node.value) : formatNs(node.value),
      ` of ${measure === 'count' ? 'all' : usable.find(([name]) => name === measure)[1]}`];
  const picture = icicle(treeOf(measure), {label: 'flame graph', key: 'flame', colour: warm, tell});
  const reach = el('p', {class: 'why', hidden: true}, 'The ranks of the selection, and all their time.');
  selection.onChange(() => {
    reach.hidden = !selection.active;
    picture.replace(treeOf(measure));
  });
  const measured = choice('measure', usable, (picked) => {
    measure = picked;
    picture.replace(treeOf(measure));
  });
  const search = searchField('flame graph', picture.find);
  remember('q.flame', search.get, search.set);
  remember('flame.by', measured.get, measured.set);
  return section('flame', 'Flame graph', question, 'selection', reach,
      el('div', {class: 'tools'}, measured.element, search.element, picture.found), picture.holder);
};
