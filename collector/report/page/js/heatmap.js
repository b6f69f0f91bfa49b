// Steps x ranks. Its brush is the selection that the sections below heed.
import {page, selection, tableOf} from './begin.js';
import {formatNs, labelOf} from './units.js';
import {canvasIn, causeVar, cell, choice, cssColour, el, emptySection, hideTip, notesOf, section, showTip} from
  './dom.js';
import {noteView, remember} from './view_state.js';

const heatScale = (mode, values) => {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  const low = d3.quantileSorted(sorted, 0.02) || 0;
  const high = Math.max(d3.quantileSorted(sorted, 0.98) || 1, low + 1);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const ramp = mode === 'excess' ? (dark ? ['#1d2733', '#8a5a1c', '#f4b74a'] : ['#f3f4f6', '#f5c26b', '#b4430f'])
    : (dark ? ['#172436', '#2c6a9e', '#a9dcf5'] : ['#eaf2fa', '#6aa5d8', '#123f73']);
  const scale = d3.scaleLinear().domain([low, (low + high) / 2, high]).range(ramp).clamp(true);
  // A thousand shades: a colour for each of 64,000 cells costs more than painting it.
  const shades = d3.range(256).map((i) => scale(low + ((high - low) * i) / 255));
  return {low, high, ramp, of: (value) =>
      shades[Math.max(0, Math.min(255, Math.round(((value - low) / (high - low)) * 255)))]};
};

// Steps of the table, by rank as page.steps has them: both list them in one order.
export const stepRows = () => {
  let row = 0;
  return page.steps.map((rank) => {
    const first = row;
    row += rank.us.length;
    return first;
  });
};

const HEAT_MARGIN = {left: 54, right: 4, top: 4, bottom: 24};

class HeatMap {
  constructor(steps) {
    this.steps = steps;
    this.first = stepRows();
    this.ranks = page.steps.length;
    this.columns = d3.max(page.steps, (rank) => rank.us.length);
    this.totals = page.steps.map((rank, r) => Array.from(rank.us, (us, i) => steps.at(this.first[r] + i, 'total_ns')));
    this.medians = d3.range(this.columns).map((i) => d3.median(this.totals, (total) => total[i]));
    this.rowHeight = Math.max(5, Math.min(26, Math.floor(420 / this.ranks)));
    this.height = this.rowHeight * this.ranks + HEAT_MARGIN.top + HEAT_MARGIN.bottom;
    this.mode = 'time';
    this.scale = null;
    this.cursor = null;
    this.width = 0;
    this.key = el('span', {class: 'key'});
    this.canvas = canvasIn(this.height, (context, width) => this.paint(context, width),
        {id: 'heat', tabindex: '0', role: 'application',
      'aria-label': `${this.ranks} ranks, ${this.columns} steps. Arrow keys move, shift and arrows select, Escape clears.`});
    this.canvas.canvas.addEventListener('keydown', (event) => this.press(event));
    this.addBrush();
  }

  valueOf(r, i) {
    const total = this.totals[r][i];
    if (total === undefined) return null;
    return this.mode === 'excess' ? total - this.medians[i] : total;
  }
  get inner() { return Math.max(1, this.width - HEAT_MARGIN.left - HEAT_MARGIN.right); }
  columnAt(x) { return Math.max(0,
      Math.min(this.columns - 1, Math.floor(((x - HEAT_MARGIN.left) / this.inner) * this.columns))); }
  rowAt(y) { return Math.max(0, Math.min(this.ranks - 1, Math.floor((y - HEAT_MARGIN.top) / this.rowHeight))); }
  xOf(column) { return HEAT_MARGIN.left + (column * this.inner) / this.columns; }
  yOf(row) { return HEAT_MARGIN.top + row * this.rowHeight; }
  rescale() {
    this.scale = null;
    this.canvas.redraw();
  }

  paint(context, width) {
    this.width = width;
    const started = performance.now();
    this.scale = this.scale || heatScale(this.mode,
        this.totals.flatMap((total, r) => total.map((_, i) => this.valueOf(r, i))));
    const size = this.inner / this.columns;
    const wide = size < 1 ? 1 : size > 4 ? size - 1 : size;
    const high = this.rowHeight - (this.rowHeight > 6 ? 1 : 0);
    for (let r = 0; r < this.ranks; ++r) {
      for (let i = 0; i < this.totals[r].length; ++i) {
        context.fillStyle = this.scale.of(this.valueOf(r, i));
        context.fillRect(HEAT_MARGIN.left + i * size, this.yOf(r), wide, high);
      }
    }
    this.paintLabels(context);
    if (this.cursor !== null) {
      context.strokeStyle = cssColour('--text');
      context.lineWidth = 2;
      context.strokeRect(this.xOf(this.cursor[1]), this.yOf(this.cursor[0]), Math.max(2, size), this.rowHeight);
    }
    this.key.replaceChildren(formatNs(this.scale.low),
        el('i', {style: {background: `linear-gradient(90deg, ${this.scale.ramp.join(',')})`}}),
        formatNs(this.scale.high));
    this.canvas.canvas.dataset.paintMs = (performance.now() - started).toFixed(1);
    this.layBrush();
  }

  paintLabels(context) {
    context.fillStyle = cssColour('--muted');
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    const everyRow = Math.ceil(14 / this.rowHeight);
    for (let r = 0; r < this.ranks; r += everyRow) context.fillText(labelOf(page.steps[r]), HEAT_MARGIN.left - 6,
        this.yOf(r + 0.5));
    context.textAlign = 'center';
    const everyColumn = Math.max(1, Math.ceil(this.columns / Math.max(2, Math.floor(this.inner / 60))));
    for (let i = 0; i < this.columns; i += everyColumn) {
      context.fillText(String(stepNumber(i)), Math.min(this.width - 12, this.xOf(i + 0.5)), this.height - 10);
    }
  }

  addBrush() {
    this.layer = d3.create('svg').attr('class', 'brush-layer').attr('aria-hidden', 'true');
    this.brushPlace = this.layer.append('g');
    this.moving = false;
    this.brush = d3.brush().on('end', () => {
      if (this.moving) return;
      const area = d3.event.selection;
      if (area === null) return void selection.set(null, null);
      selection.set([this.rowAt(area[0][1]), this.rowAt(area[1][1] - 0.01)],
          [this.columnAt(area[0][0]), this.columnAt(area[1][0] - 0.01)]);
    });
    this.layer.on('pointermove', () => {
      const [x, y] = d3.mouse(this.layer.node());
      this.tell(Math.floor((y - HEAT_MARGIN.top) / this.rowHeight),
          Math.floor(((x - HEAT_MARGIN.left) / this.inner) * this.columns), d3.event.clientX, d3.event.clientY);
    }).on('pointerleave', hideTip);
    this.canvas.holder.append(this.layer.node());
  }
  // As the selection is: it snaps to whole cells.
  layBrush() {
    this.layer.attr('width', this.width).attr('height', this.height);
    this.brush.extent([[HEAT_MARGIN.left, HEAT_MARGIN.top], [HEAT_MARGIN.left + this.inner, this.yOf(this.ranks)]]);
    this.moving = true;
    this.brushPlace.call(this.brush);
    this.brushPlace.call(this.brush.move, !selection.active ? null
      : [[this.xOf(selection.steps[0]), this.yOf(selection.ranks[0])],
          [this.xOf(selection.steps[1] + 1), this.yOf(selection.ranks[1] + 1)]]);
    this.moving = false;
  }

  tell(r, i, x, y) {
    if (this.totals[r] === undefined || this.totals[r][i] === undefined) return void hideTip();
    const {steps} = this;
    const row = this.first[r] + i;
    const causes = Object.entries(page.steps[r].causes).map(([cause, us]) => [cause, us[i]])
        .filter((part) => part[1] > 0).sort((a, b) => b[1] - a[1]).slice(0, 4);
    showTip(x, y, el('strong', {}, `${page.steps[r].name}, step `, cell(steps, row, 'step')), el('br'),
        cell(steps, row, 'total_ns'),
      ` (median of the ranks ${formatNs(this.medians[i])})`, el('br'),
      steps.at(row, 'device_busy_percent') === null ? '' : ['devices busy ', cell(steps, row, 'device_busy_percent')],
      causes.map(([cause, us]) => el('div', {}, el('i', {class: 'swatch', style: {background: causeVar(cause)}}),
          `${cause} ${formatNs(us * 1000)}`)));
  }

  press(event) {
    const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (event.key === 'Escape') {
      this.cursor = null;
      selection.set(null, null);
    } else if (move) {
      event.preventDefault();
      this.step(move, event.shiftKey);
    } else return;
    this.canvas.redraw();
  }
  step([down, right], selects) {
    const [r, i] = this.cursor || [0, -1];
    const from = this.cursor || [0, 0];
    const to = [Math.max(0, Math.min(this.ranks - 1, r + down)), Math.max(0, Math.min(this.columns - 1, i + right))];
    this.cursor = to;
    if (selects) {
      const old = selection.active ? selection : {ranks: [from[0], from[0]], steps: [from[1], from[1]]};
      selection.set([Math.min(old.ranks[0], to[0]), Math.max(old.ranks[1], to[0])],
          [Math.min(old.steps[0], to[1]), Math.max(old.steps[1], to[1])]);
    }
    const box = this.canvas.canvas.getBoundingClientRect();
    this.tell(...to, box.left + this.xOf(to[1] + 0.5), box.top + this.yOf(to[0] + 1));
  }
}

export const heatmapSection = () => {
  const steps = tableOf('steps');
  const question = 'each rank’s steps; drag over a part to see it alone below';
  if (steps.count === 0 || page.steps.length === 0) {
    return emptySection('heatmap', 'Steps by rank', question,
        steps.notes[0] || 'No step was found. Record with --level full, or mark steps with NVTX ranges.');
  }
  const map = new HeatMap(steps);
  const said = el('p', {class: 'selected-text', role: 'status'});
  const clear = el('button', {type: 'button', hidden: true, onclick: () => selection.set(null, null)},
      'clear selection');
  selection.onChange(() => {
    clear.hidden = !selection.active;
    said.textContent = selection.active ? describeSelection() : '';
    map.canvas.redraw();
    noteView();
  });
  rememberSelection();
  const modes = choice('colour by', [['time', 'step time'], ['excess', 'excess over the step’s median']], (picked) => {
    map.mode = picked;
    map.rescale();
  });
  remember('colour', modes.get, modes.set);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => map.rescale());
  return section('heatmap', 'Steps by rank', question, null, el('div', {class: 'tools'}, modes.element, map.key, said, clear),
      map.canvas.holder, notesOf(steps));
};

const stepNumber = (column) => {
  const rank = page.steps.find((of) => of.numbers[column] !== undefined);
  return rank ? rank.numbers[column] : column;
};
// By the numbers that people know: "1-2" of ranks and steps.
const rankNumber = (row) => (page.steps.every((of) => of.rank !== null) ? page.steps[row].rank : row);
const rememberSelection = () => {
  const columns = d3.max(page.steps, (rank) => rank.us.length);
  const rangeOf = (bounds, nameOf) => (bounds === null ? null : [...new Set(bounds.map(nameOf))].join('-'));
  const read = (text, count, nameOf) => {
    if (text === null) return null;
    const [first, last] = text.split('-').map((number) => d3.range(count).find((at) => String(nameOf(at)) === number));
    return first === undefined ? null : [first, last === undefined ? first : Math.max(first, last)];
  };
  remember('ranks', () => rangeOf(selection.ranks, rankNumber), (text) => {
    const ranks = read(text, page.steps.length, rankNumber);
    selection.set(ranks, ranks === null ? null : selection.steps || [0, columns - 1]);
  });
  remember('steps', () => rangeOf(selection.steps, stepNumber), (text) => {
    const steps = read(text, columns, stepNumber);
    selection.set(steps === null ? null : selection.ranks || [0, page.steps.length - 1], steps);
  });
};
const describeSelection = () => {
  const [from, to] = selection.ranks.map((r) => page.steps[r].name);
  const [first, last] = selection.steps.map(stepNumber);
  return `${from === to ? from : `${from} to ${to}`}, ${first === last ? `step ${first}`
      : `steps ${first} to ${last}`}`;
};
