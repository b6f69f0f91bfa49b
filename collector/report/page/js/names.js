// What one rank ran, by name: kernels by stream, operators and modules by depth, the program's lines.
import {page} from './begin.js';
import {cut, formatNs, shortName} from './units.js';
import {canvasIn, cssColour, el, inkOn, showTip} from './dom.js';
import {hueOf} from './modules.js';

const ROW = 19;
const KINDS = {kernel: [216, 45], operator: [150, 30], module: [262, 28], line: [28, 45]};

const decodeRow = (row) => {
  let at = 0;
  return {...row, parts: row.names.map((name, i) => {
    at += row.starts[i];
    return [page.names.names[name], at, at + row.ns[i]];
  })};
};
// A module's own name tells more than the path to it.
const lastOf = (kind, name) => (kind === 'module' ? name.split('.').slice(-2).join('.') : shortName(name));

export class NamedRows {
  // view(): [from, to]; margin: of the lanes above, so that both have one scale.
  constructor(view, scale, margin) {
    this.view = view;
    this.scale = scale;
    this.margin = margin;
    this.byTrace = new Map((page.names ? page.names.ranks : []).map((rank) => [rank.trace, rank]));
    this.decoded = new Map();
    this.trace = null;
    this.text = '';
    this.bisect = d3.bisector((part) => part[2]).right;
    this.canvas = canvasIn(ROW, (context, width) => this.paint(context, width),
        {id: 'names-canvas', tabindex: '0', role: 'application',
      'aria-label': 'what the rank ran, by name. Plus and minus zoom, arrow keys move, 0 shows all.'});
  }
  has(trace) { return this.byTrace.has(trace); }
  get isEmpty() { return this.byTrace.size === 0; }
  get rows() {
    if (!this.decoded.has(this.trace)) {
      const rank = this.byTrace.get(this.trace);
      this.decoded.set(this.trace, rank === undefined ? [] : rank.rows.map(decodeRow));
    }
    return this.decoded.get(this.trace);
  }
  show(trace) {
    this.trace = trace;
    this.canvas.resize(Math.max(1, this.rows.length) * ROW);
    this.canvas.redraw();
  }
  search(text) {
    this.text = text;
    this.canvas.redraw();
  }
  matches(name) { return this.text === '' || name.toLowerCase().includes(this.text); }
  // All that match, by start.
  found() {
    if (this.text === '') return [];
    return this.rows.flatMap((row) => row.parts.filter((part) => this.matches(part[0]))).sort((a, b) => a[1] - b[1]);
  }

  paint(context, width) {
    const [from, to] = this.view();
    const x = this.scale();
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.rows.forEach((row, r) => {
      const y = r * ROW;
      context.globalAlpha = 1;
      if (row.label !== '') {
        context.fillStyle = cssColour('--muted');
        context.textAlign = 'right';
        context.fillText(cut(row.label, 9), this.margin.left - 6, y + ROW / 2);
      }
      context.textAlign = 'left';
      let painted = -1;
      for (let i = this.bisect(row.parts, from); i < row.parts.length && row.parts[i][1] < to; ++i) {
        const [name, start, end] = row.parts[i];
        const left = Math.max(this.margin.left, x(start));
        const right = Math.min(width - this.margin.right, x(end));
        const isFound = this.text !== '' && this.matches(name);
        if (right - painted < 0.5 && !isFound) continue;
        this.paintPart(context, row.kind, name, [left, y, Math.max(isFound ? 2 : 0.6, right - left), ROW - 2]);
        painted = right;
      }
    });
    context.globalAlpha = 1;
  }
  paintPart(context, kind, name, [left, top, wide, high]) {
    const [hue, saturation] = KINDS[kind];
    const colour = `hsl(${hue + (hueOf(name) % 24)}, ${saturation}%, ${40 + (hueOf(name) % 4) * 5}%)`;
    context.globalAlpha = this.matches(name) ? 1 : 0.18;
    context.fillStyle = colour;
    context.fillRect(left, top, Math.max(0.6, wide - (wide > 3 ? 1 : 0)), high);
    const room = Math.floor((wide - 8) / 6);
    if (room < 4 || !this.matches(name)) return;
    context.fillStyle = inkOn(colour);
    const text = lastOf(kind, name);
    context.fillText(text.length <= room ? text : `${text.slice(0, room - 1)}…`, left + 4, top + high / 2 + 0.5);
  }

  tell(event) {
    const row = this.rows[Math.floor(event.offsetY / ROW)];
    const time = this.scale().invert(event.offsetX);
    const part = row && row.parts[this.bisect(row.parts, time)];
    if (!part || part[1] > time) return false;
    showTip(event.clientX, event.clientY, el('strong', {}, cut(part[0], 400)), el('br'),
        `${row.kind}, at ${formatNs(part[1])}, for ${formatNs(part[2] - part[1])}`);
    return true;
  }
}
