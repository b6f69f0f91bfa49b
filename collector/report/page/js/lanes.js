// What each rank did at each moment, by cause; zoomed by keys, buttons, ctrl and wheel, or the selection.
import {page, selection} from './begin.js';
import {formatNs, labelOf} from './units.js';
import {canvasIn, CAUSE_MEANING, causeColour, command, cssColour, el, emptySection, hideTip, legend, searchField,
  section, shellWord, showTip} from './dom.js';
import {NamedRows} from './names.js';
import {noteView, remember} from './view_state.js';

const decodeLane = (rank) => {
  const parts = [];  // [letter's number, first bin, bins]
  let at = 0;
  for (const [, letter, count] of rank.bins.matchAll(/([a-z.])(\d*)/g)) {
    const bins = count === '' ? 1 : Number(count);
    if (letter !== '.') parts.push([letter.charCodeAt(0) - 97, rank.start_ns + at * rank.bin_ns,
        rank.start_ns + (at + bins) * rank.bin_ns]);
    at += bins;
  }
  return parts;
};
const seconds = (ns) => `${(ns / 1e9).toFixed(6).replace(/0+$/, '').replace(/\.$/, '')}s`;

const LANE_MARGIN = {left: 64, right: 4, top: 18};

class Lanes {
  constructor(lanes) {
    this.all = lanes;
    this.shown = lanes;
    this.causes = page.lanes.causes;
    const ends = lanes.filter((lane) => lane.parts.length > 0);
    this.whole = [d3.min(ends, (lane) => lane.parts[0][1]),
        d3.max(ends, (lane) => lane.parts[lane.parts.length - 1][2])];
    this.view = [...this.whole];
    this.laneHeight = Math.max(7, Math.min(30, Math.floor(520 / lanes.length)));
    this.width = 0;
    this.drag = null;
    this.bisect = d3.bisector((part) => part[2]).right;
    this.command = command('');
    this.canvas = canvasIn(this.heightOf(lanes), (context, width) => this.paint(context, width),
        {id: 'lanes-canvas', tabindex: '0', role: 'application',
      'aria-label': `lanes of ${lanes.length} ranks. Plus and minus zoom, arrow keys move, 0 shows all.`});
    this.names = new NamedRows(() => this.view, () => this.scaleX, LANE_MARGIN);
    this.rank = el('b');
    this.listen(this.canvas.canvas, (event) => this.tell(event));
    this.listen(this.names.canvas.canvas, (event) => this.names.tell(event) || hideTip());
    this.canvas.canvas.addEventListener('click', (event) => this.choose(event));
    this.first = (lanes.find((lane) => this.names.has(lane.trace)) || lanes[0]).trace;
    this.pick(this.first);
  }
  // The lane whose names stand below.
  pick(trace) {
    this.picked = trace;
    this.rank.textContent = this.all.find((lane) => lane.trace === trace).name;
    this.names.show(trace);
    this.canvas.redraw();
  }
  choose(event) {
    const lane = this.shown[Math.floor((event.offsetY - LANE_MARGIN.top) / this.laneHeight)];
    if (lane === undefined || this.moved || !this.names.has(lane.trace)) return;
    this.pick(lane.trace);
    noteView();
  }
  // The next that matches after the middle of what one sees, else the first.
  nameOf(trace) { return this.all.find((lane) => lane.trace === trace).name.replace(/^rank /, ''); }
  pickNamed(text) {
    const lane = this.all.find((of) => this.nameOf(of.trace) === text);
    this.pick(lane === undefined ? this.first : lane.trace);
  }
  viewText() {
    if (this.view[0] <= this.whole[0] && this.view[1] >= this.whole[1]) return null;
    return this.view.map((ns) => Number((ns / 1e9).toFixed(9))).join(':');
  }
  setView(text) {
    const [from, to] = (text || '').split(':').map((part) => Number(part) * 1e9);
    if (text !== null && to > from) this.show(from, to);
    else this.showAll();
  }
  goToNext() {
    const all = this.names.found();
    if (all.length === 0) return;
    const middle = (this.view[0] + this.view[1]) / 2;
    const [, from, to] = all.find((part) => (part[1] + part[2]) / 2 > middle + 1) || all[0];
    const length = Math.max((to - from) * 6, Math.min(this.view[1] - this.view[0], (to - from) * 12));
    this.show((from + to - length) / 2, (from + to + length) / 2);
  }
  heightOf(lanes) { return LANE_MARGIN.top + Math.max(1, lanes.length) * this.laneHeight + 2; }
  get scaleX() { return d3.scaleLinear().domain(this.view)
      .range([LANE_MARGIN.left, Math.max(LANE_MARGIN.left + 1, this.width - LANE_MARGIN.right)]); }

  paint(context, width) {
    this.width = width;
    const x = this.scaleX;
    const colours = this.causes.map(causeColour);
    this.paintTicks(context, x);
    this.shown.forEach((lane, r) => {
      const y = LANE_MARGIN.top + r * this.laneHeight;
      context.fillStyle = cssColour(lane.trace === this.picked && !this.names.isEmpty ? '--accent' : '--muted');
      context.textAlign = 'right';
      if (r % Math.ceil(14 / this.laneHeight) === 0) context.fillText(labelOf(lane), LANE_MARGIN.left - 6,
          y + this.laneHeight / 2);
      this.paintLane(context, lane, y, x, colours);
    });
    const [from, to] = this.view;
    this.command.firstChild.textContent = `ranktap export ${page.inputs.map(shellWord).join(' ')
        } --format perfetto --window ${seconds(from)}:${seconds(to)} -o window.pftrace`;
  }
  // What is thinner than a pixel is painted once a pixel.
  paintLane(context, lane, y, x, colours) {
    const high = this.laneHeight - (this.laneHeight > 9 ? 2 : 1);
    let painted = -1;
    for (let i = this.bisect(lane.parts, this.view[0]); i < lane.parts.length && lane.parts[i][1] < this.view[1]; ++i) {
      const [cause, from, until] = lane.parts[i];
      const left = Math.max(LANE_MARGIN.left, x(from));
      const right = Math.min(this.width - LANE_MARGIN.right, x(until));
      if (right - painted < 0.5) continue;
      context.fillStyle = colours[cause];
      context.fillRect(left, y, Math.max(0.6, right - left), high);
      painted = right;
    }
  }
  paintTicks(context, x) {
    context.fillStyle = cssColour('--muted');
    context.strokeStyle = cssColour('--line');
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const tick of x.ticks(Math.max(2, Math.floor(this.width / 110)))) {
      context.beginPath();
      context.moveTo(x(tick), LANE_MARGIN.top - 4);
      context.lineTo(x(tick), this.heightOf(this.shown));
      context.stroke();
      context.fillText(formatTick(tick, this.view[1] - this.view[0]), Math.min(this.width - 24, x(tick)), 8);
    }
  }

  show(from, to) {
    const all = this.whole[1] - this.whole[0];
    const length = Math.max(Math.min(1000, all), Math.min(to - from, all));
    const start = Math.max(this.whole[0], Math.min(from, this.whole[1] - length));
    this.view = [start, start + length];
    this.canvas.redraw();
    this.names.canvas.redraw();
    noteView();
  }
  showAll() { this.show(...this.whole); }
  zoom(factor, centre = (this.view[0] + this.view[1]) / 2) {
    this.show(centre - (centre - this.view[0]) * factor, centre + (this.view[1] - centre) * factor);
  }
  pan(share) {
    const length = this.view[1] - this.view[0];
    this.show(this.view[0] + share * length, this.view[1] + share * length);
  }
  select() {
    const inside = page.steps.filter((_, r) => selection.active && selection.hasRank(r));
    const traces = new Set(inside.map((rank) => rank.trace));
    this.shown = selection.active ? this.all.filter((lane) => traces.has(lane.trace)) : this.all;
    this.canvas.resize(this.heightOf(this.shown));
    if (!this.shown.some((lane) => lane.trace === this.picked) && this.shown.length > 0) this.pick(this.shown[0].trace);
    const [first, last] = selection.steps || [0, 0];
    const chosen = inside.filter((rank) => first < rank.us.length);
    if (chosen.length === 0) return void this.showAll();
    const end = (rank) => Math.min(last, rank.us.length - 1);
    this.show(d3.min(chosen, (rank) => rank.start_us[first]) * 1000,
        d3.max(chosen, (rank) => rank.start_us[end(rank)] + rank.us[end(rank)]) * 1000);
  }

  listen(canvas, tell) {
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;  // else the page scrolls, as people expect
      event.preventDefault();
      this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, this.scaleX.invert(event.offsetX));
    }, {passive: false});
    canvas.addEventListener('keydown', (event) => {
      const keys = {'+': () => this.zoom(0.6), '=': () => this.zoom(0.6), '-': () => this.zoom(1.6),
          ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25), '0': () => this.showAll(),
          Escape: () => this.showAll()};
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    canvas.addEventListener('pointerdown', (event) => {
      this.drag = {x: event.offsetX, view: [...this.view]};
      this.moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', () => { this.drag = null; });
    canvas.addEventListener('pointercancel', () => { this.drag = null; });
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('dblclick', (event) => this.zoom(0.4, this.scaleX.invert(event.offsetX)));
    canvas.addEventListener('pointermove',
        (event) => (this.drag === null ? tell(event) : this.dragTo(event.offsetX)));
  }
  dragTo(x) {
    const {x: start, view} = this.drag;
    const moved = ((x - start) * (view[1] - view[0])) / (this.width - LANE_MARGIN.left - LANE_MARGIN.right);
    this.moved = this.moved || Math.abs(x - start) > 3;
    this.show(view[0] - moved, view[1] - moved);
  }
  tell(event) {
    const lane = this.shown[Math.floor((event.offsetY - LANE_MARGIN.top) / this.laneHeight)];
    const time = this.scaleX.invert(event.offsetX);
    const part = lane && lane.parts[this.bisect(lane.parts, time)];
    if (!part || part[1] > time) return void hideTip();
    const cause = this.causes[part[0]];
    showTip(event.clientX, event.clientY, el('strong', {}, `${lane.name}: ${cause}`), el('br'),
        `at ${formatNs(time)}, for about ${formatNs(part[2] - part[1])}`, el('br'), CAUSE_MEANING[cause] || '');
  }
}

export const lanesSection = () => {
  const question = 'what each rank did, moment by moment';
  const all = page.lanes.ranks.map((rank) => ({...rank, parts: decodeLane(rank)}));
  if (all.every((lane) => lane.parts.length === 0)) {
    return emptySection('lanes', 'Lanes', question,
        'Nothing has a time. Record kernels with --level kernels, PyTorch on a CPU with --level full.');
  }
  const lanes = new Lanes(all);
  selection.onChange(() => lanes.select());
  const used = [...new Set(all.flatMap((lane) => lane.parts.map((part) => part[0])))].sort((a, b) => a - b);
  const buttons = el('div', {class: 'choice', role: 'group', 'aria-label': 'zoom'},
    [['−', () => lanes.zoom(1.6), 'zoom out'], ['+', () => lanes.zoom(0.6), 'zoom in'],
        ['◀', () => lanes.pan(-0.25), 'earlier'], ['▶', () => lanes.pan(0.25), 'later'],
        ['all', () => lanes.showAll(), 'show all']].map(([text, act, label]) =>
      el('button', {type: 'button', 'aria-label': label, onclick: act}, text)));
  remember('lanes', () => lanes.viewText(), (text) => lanes.setView(text));
  return section('lanes', 'Lanes', question, 'selection',
      el('div', {class: 'tools'}, buttons, legend(used.map((cause) => lanes.causes[cause]))), lanes.canvas.holder,
      lanes.names.isEmpty ? null : namesOf(lanes),
    el('p', {class: 'hint'}, 'Drag to move, double-click or ctrl+wheel to zoom. This window in Perfetto: ',
        lanes.command));
};
const namesOf = (lanes) => {
  const count = el('span', {class: 'count', role: 'status'});
  const search = searchField('names', (text) => {
    lanes.names.search(text);
    const {length} = lanes.names.found();
    count.textContent = text === '' ? '' : `${length.toLocaleString('en')} found; Enter goes to the next`;
  });
  search.element.addEventListener('keydown', (event) => { if (event.key === 'Enter') lanes.goToNext(); });
  remember('names', () => (lanes.picked === lanes.first ? null : String(lanes.nameOf(lanes.picked))),
      (text) => lanes.pickNamed(text));
  remember('q.names', search.get, search.set);
  const left = page.names.left_out;
  return el('div', {class: 'names'}, el('div', {class: 'tools'}, el('span', {}, 'By name: ', lanes.rank), search.element,
      count, lanes.all.length > 1 ? el('span', {class: 'count'}, 'click a lane for another rank') : null),
  lanes.names.canvas.holder, left === 0 ? null : el('p', {class: 'hint'},
      `The longest have their names here; ${left.toLocaleString('en')} shorter ones do not.`));
};
export const formatTick = (ns, span) => {
  const [unit, size] = span >= 3e9 ? ['s', 1e9] : span >= 3e6 ? ['ms', 1e6] : span >= 3e3 ? ['µs', 1e3] : ['ns', 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(span / size / 8)));
  return `${(ns / size).toFixed(Math.min(digits, 6))} ${unit}`;
};
