// Modules as an icicle: each as wide as its share of the one around it.
import {page, selection, tableOf} from './begin.js';
import {canvasIn, cell, choice, cssColour, el, emptySection, hideTip, inkOn, section, showTip} from './dom.js';
import {noteView, remember} from './view_state.js';
import {dataTable} from './tables.js';
import {followSelection, selectionColumn, timesInSelection} from './kernels.js';

export const icicle = (root, options) => {
  // root: {name, value (own), children}; options.tell(node), colour(node)
  const row = 24;
  let focus = null;
  let width = 0;
  let tree = null;
  let text = '';
  const matches = (node) => node.data.name.toLowerCase().includes(text);
  // The names from the root's child down to the focus, each escaped: a name may hold a "/".
  const pathOf = (node) => node.ancestors().reverse().slice(1)
      .map((of) => of.data.name.replace(/[%/]/g, encodeURIComponent)).join('/');
  const nodeOf = (path) => (path ? path.split('/').map(decodeURIComponent) : [])
      .reduce((node, name) => (node && (node.children || []).find((child) => child.data.name === name)), tree) || tree;
  const build = () => {
    const path = focus === null ? '' : pathOf(focus);
    tree = d3.hierarchy(root).sum((node) => node.own);
    tree.sort((a, b) => b.value - a.value);
    d3.partition()(tree);
    focus = nodeOf(path);
  };
  build();
  const found = el('span', {class: 'count', role: 'status'});
  // What matches inside of something that matches is counted once.
  const tellFound = () => {
    const sum = (node) => (matches(node) ? node.value : d3.sum(node.children || [], sum));
    const count = text === '' ? 0 : tree.descendants().filter(matches).length;
    found.textContent = text === '' ? '' : `${count.toLocaleString('en')} found, ${
        (100 * sum(tree) / (tree.value || 1)).toFixed(1)} % of all`;
  };
  const find = (wanted) => {
    text = wanted;
    tellFound();
    canvas.redraw();
  };
  const focusOn = (node) => {
    focus = node;
    canvas.redraw();
    noteView();
  };
  remember(options.key, () => pathOf(focus) || null, (path) => focusOn(nodeOf(path)));
  const depth = Math.min(14, tree.height + 1);
  const paint = (context, w) => {
    width = w;
    const span = focus.x1 - focus.x0 || 1;
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    tree.each((node) => {
      const level = node.depth - Math.max(0, focus.depth - 2);
      if (level < 0 || level >= depth || node.x1 <= focus.x0 || node.x0 >= focus.x1) return;
      const left = Math.max(0, ((node.x0 - focus.x0) / span) * width);
      const right = Math.min(width, ((node.x1 - focus.x0) / span) * width);
      if (right - left < 0.5) return;
      const colour = options.colour(node);
      const isPale = node.depth < focus.depth || (text !== '' && !matches(node));
      context.fillStyle = colour;
      context.globalAlpha = isPale ? 0.16 : 1;
      context.fillRect(left, level * row, right - left - (right - left > 3 ? 1 : 0), row - 1);
      context.globalAlpha = 1;
      const room = Math.floor((right - left - 10) / 6.4);
      if (room >= 5) {
        context.fillStyle = isPale ? cssColour('--text') : inkOn(colour);
        const {name} = node.data;
        context.fillText(name.length <= room ? name : `${name.slice(0, room - 1)}…`, left + 5, level * row + row / 2);
      }
    });
  };
  const canvas = canvasIn(row * depth, paint,
      {tabindex: '0', role: 'application',
      'aria-label': `${options.label}. Arrow keys move, Enter shows a part alone, Escape shows all.`});
  const nodeAt = (event) => {
    const level = Math.floor(event.offsetY / row) + Math.max(0, focus.depth - 2);
    const x = focus.x0 + (event.offsetX / width) * (focus.x1 - focus.x0);
    return tree.descendants().find((node) => node.depth === level && x >= node.x0 && x < node.x1);
  };
  canvas.canvas.addEventListener('pointermove', (event) => {
    const node = nodeAt(event);
    node ? showTip(event.clientX, event.clientY, options.tell(node)) : hideTip();
  });
  canvas.canvas.addEventListener('pointerleave', hideTip);
  canvas.canvas.addEventListener('click', (event) => {
    const node = nodeAt(event);
    focusOn(node === undefined || node === focus ? (focus.parent || tree) : node);
  });
  canvas.canvas.addEventListener('keydown', (event) => {
    const siblings = focus.parent ? focus.parent.children : [focus];
    const at = siblings.indexOf(focus);
    const next = {ArrowDown: focus.children && focus.children[0], ArrowUp: focus.parent, ArrowLeft: siblings[at - 1],
        ArrowRight: siblings[at + 1], Escape: tree}[event.key];
    if (!next) return;
    event.preventDefault();
    focusOn(next);
    const box = canvas.canvas.getBoundingClientRect();
    showTip(box.left + 20, box.top + row * 2, options.tell(focus));
  });
  return {holder: canvas.holder, find, found,
    replace: (next) => { root = next; build(); tellFound(); canvas.redraw(); }};
};
// Of a name, the same in each picture.
export const hueOf = (name) => {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) % 360;
  return hash;
};
const blueOf = (node) => `hsl(${203 + (hueOf(node.data.name) % 18)}, ${34 + (hueOf(node.data.name) % 5) * 4}%, ${34 +
    (node.depth % 4) * 5}%)`;

const moduleTree = (valueOf, names) => {
  const root = {name: 'model', path: '', children: new Map(), total: 0, row: null};
  for (const [path, row] of names) {
    let node = root;
    let at = '';
    for (const part of path.split('.')) {
      at = at === '' ? part : `${at}.${part}`;
      if (!node.children.has(part)) node.children.set(part,
          {name: part, path: at, children: new Map(), total: 0, row: null});
      node = node.children.get(part);
    }
    node.total = valueOf(row) || 0;
    node.row = row;
  }
  const finish = (node) => {
    const children = [...node.children.values()].map(finish);
    const inside = children.reduce((sum, child) => sum + child.whole, 0);
    const whole = Math.max(node.total, inside);
    return {name: node.name, path: node.path, row: node.row, whole, own: Math.max(0, whole - inside), children};
  };
  const done = finish(root);
  return done.children.length === 1 ? done.children[0] : done;
};

export const modulesSection = () => {
  const modules = tableOf('modules');
  const held = tableOf('memory-modules');
  const question = 'the forward pass, module by module; click one to see it alone';
  if (modules.count === 0) return emptySection('modules', 'Modules', question,
      modules.notes[0] || 'No module ran: --level full records the modules of PyTorch.');
  const names = modules.rowsWhere(() => true).map((row) => [modules.at(row, 'module'), row]);
  const onDevice = modules.has('gpu_ns') && names.some(([, row]) => modules.at(row, 'gpu_ns') > 0);
  const measures = [['total_ns', 'time on the host']];
  if (onDevice) measures.unshift(['gpu_ns', 'time on the GPU']);
  if (names.some(([, row]) => modules.at(row, 'forward_flops') > 0)) measures.push(['forward_flops', 'FLOPs']);
  const bytes = new Map();
  for (const row of held.rowsWhere(() => true)) {
    const name = held.at(row, 'module');
    if (held.at(row, 'rank') === held.at(0, 'rank') && !name.startsWith('(')) bytes.set(name, row);
  }
  if (bytes.size > 0) measures.push(['memory', 'memory at the peak']);
  let measure = measures[0][0];
  const times = timesInSelection(page.times.modules, (module) => module.name);
  const hostTime = (row) => {
    const selected = times.of(modules.at(row, 'module'));
    return selected === null ? modules.at(row, 'total_ns') : selected;
  };
  const treeOf = () => {
    if (measure === 'total_ns') return moduleTree(hostTime, names);
    if (measure !== 'memory') return moduleTree((row) => modules.at(row, measure), names);
    return moduleTree((row) => held.at(row, 'bytes'), [...bytes]);
  };
  const tell = (node) => {
    const {row, path, whole} = node.data;
    if (row === null) return [el('strong', {}, path || 'model')];
    if (measure === 'memory') return [el('strong', {}, path), el('br'), cell(held, row, 'bytes'), ' at the peak'];
    return [el('strong', {}, path), el('br'), onDevice ? [cell(modules, row, 'gpu_ns'), ' on the GPU, '] : '',
        cell(modules, row, 'total_ns'), ' on the host', el('br'),
      cell(modules, row, 'calls'), ' calls',
          modules.at(row, 'forward_flops') > 0 ? [', ', cell(modules, row, 'forward_flops'), ' FLOPs forward'] : '',
          whole > 0 ? '' : ''];
  };
  const picture = icicle(treeOf(), {label: 'modules', key: 'modules', colour: blueOf, tell});
  const table = dataTable(modules,
      {noun: 'modules', search: true, onSearch: picture.find, extra: selectionColumn(times, (row) => modules.at(row, 'module')),
      columns: ['module', 'calls', 'gpu_ns', 'total_ns', 'self_ns', 'mean_ns', 'forward_flops', 'backward_flops',
      'ranks']});
  followSelection(table);
  const reach = el('p', {class: 'why', hidden: true},
      'Time on the host is of the selection, in the picture and the last column; all else is of the whole run.');
  selection.onChange(() => {
    reach.hidden = !selection.active;
    picture.replace(treeOf());
  });
  const measured = choice('measure', measures, (picked) => {
    measure = picked;
    picture.replace(treeOf());
  });
  remember('modules.by', measured.get, measured.set);
  return section('modules', 'Modules', question, 'selection', reach,
      el('div', {class: 'tools'}, measured.element, picture.found), picture.holder, table.element);
};
