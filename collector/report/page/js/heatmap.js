// Steps x ranks. Its brush is the selection that the sections below heed.
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
  return {low, high, ramp, of: (value) => shades[Math.max(0, Math.min(255, Math.round(((value - low) / (high - low)) * 255)))]};
};

// Steps of the table, by rank as page.steps has them: both list them in one order.
const stepRows = () => {
  let row = 0;
  return page.steps.map((rank) => {
    const first = row;
    row += rank.us.length;
    return first;
  });
};

const heatmapSection = () => {
  const steps = tableOf('steps');
  const question = 'each rank’s steps; drag over a part to see it alone below';
  if (steps.count === 0 || page.steps.length === 0) {
    return emptySection('heatmap', 'Steps by rank', question, steps.notes[0] || 'No step was found. Record with --level full, or mark steps with NVTX ranges.');
  }
  const first = stepRows();
  const ranks = page.steps.length;
  const columns = d3.max(page.steps, (rank) => rank.us.length);
  const totals = page.steps.map((rank, r) => Array.from(rank.us, (us, i) => steps.at(first[r] + i, 'total_ns')));
  const medians = d3.range(columns).map((i) => d3.median(totals, (total) => total[i]));
  const valueOf = (mode, r, i) => (totals[r][i] === undefined ? null : mode === 'excess' ? totals[r][i] - medians[i] : totals[r][i]);
  const rowHeight = Math.max(5, Math.min(26, Math.floor(420 / ranks)));
  const margin = {left: 54, right: 4, top: 4, bottom: 24};
  const height = rowHeight * ranks + margin.top + margin.bottom;
  let mode = 'time';
  let scale = null;
  let cursor = null;
  let width = 0;
  const plot = () => ({x: margin.left, w: Math.max(1, width - margin.left - margin.right)});
  const key = el('span', {class: 'key'});

  const paint = (context, w) => {
    width = w;
    const started = performance.now();
    const {x, w: inner} = plot();
    scale = scale || heatScale(mode, totals.flatMap((total, r) => total.map((_, i) => valueOf(mode, r, i))));
    const size = inner / columns;
    const gap = size > 4 ? 1 : 0;
    for (let r = 0; r < ranks; ++r) {
      for (let i = 0; i < totals[r].length; ++i) {
        context.fillStyle = scale.of(valueOf(mode, r, i));
        context.fillRect(x + i * size, margin.top + r * rowHeight, Math.max(size - gap, size < 1 ? 1 : size - gap), rowHeight - (rowHeight > 6 ? 1 : 0));
      }
    }
    context.fillStyle = cssColour('--muted');
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    const every = Math.ceil(14 / rowHeight);
    for (let r = 0; r < ranks; r += every) context.fillText(labelOf(page.steps[r]), x - 6, margin.top + (r + 0.5) * rowHeight);
    context.textAlign = 'center';
    const label = d3.scaleLinear().domain([0, columns]).range([x, x + inner]);
    const ticks = Math.max(1, Math.ceil(columns / Math.max(2, Math.floor(inner / 60))));
    for (let i = 0; i < columns; i += ticks) context.fillText(String(page.steps[0].numbers[i] === undefined ? i : page.steps[0].numbers[i]), Math.min(width - 12, label(i + 0.5)), height - 10);
    if (cursor !== null) {
      context.strokeStyle = cssColour('--text');
      context.lineWidth = 2;
      context.strokeRect(x + cursor[1] * size, margin.top + cursor[0] * rowHeight, Math.max(2, size), rowHeight);
    }
    key.replaceChildren(formatNs(scale.low), el('i', {style: {background: `linear-gradient(90deg, ${scale.ramp.join(',')})`}}), formatNs(scale.high));
    canvas.canvas.dataset.paintMs = (performance.now() - started).toFixed(1);
    layBrush();
  };
  const canvas = canvasIn(height, paint, {id: 'heat', tabindex: '0', role: 'application', 'aria-label': `${ranks} ranks, ${columns} steps. Arrow keys move, shift and arrows select, Escape clears.`});

  const overlay = d3.create('svg').attr('class', 'brush-layer').attr('aria-hidden', 'true');
  const brushPlace = overlay.append('g');
  let moving = false;
  const brush = d3.brush().on('end', () => {
    if (moving) return;
    const area = d3.event.selection;
    if (area === null) return void selection.set(null, null);
    const {x, w} = plot();
    const column = (at) => Math.max(0, Math.min(columns - 1, Math.floor(((at - x) / w) * columns)));
    const line = (at) => Math.max(0, Math.min(ranks - 1, Math.floor((at - margin.top) / rowHeight)));
    selection.set([line(area[0][1]), line(area[1][1] - 0.01)], [column(area[0][0]), column(area[1][0] - 0.01)]);
  });
  const layBrush = () => {
    const {x, w} = plot();
    overlay.attr('width', width).attr('height', height);
    brush.extent([[x, margin.top], [x + w, margin.top + ranks * rowHeight]]);
    moving = true;
    brushPlace.call(brush);
    brushPlace.call(brush.move, selection.active ? [[x + (selection.steps[0] * w) / columns, margin.top + selection.ranks[0] * rowHeight],
      [x + ((selection.steps[1] + 1) * w) / columns, margin.top + (selection.ranks[1] + 1) * rowHeight]] : null);
    moving = false;
  };
  canvas.holder.append(overlay.node());

  const tell = (r, i, x, y) => {
    if (totals[r] === undefined || totals[r][i] === undefined) return void hideTip();
    const row = first[r] + i;
    const causes = Object.entries(page.steps[r].causes).map(([cause, us]) => [cause, us[i]]).filter((part) => part[1] > 0).sort((a, b) => b[1] - a[1]).slice(0, 4);
    showTip(x, y, el('strong', {}, `${page.steps[r].name}, step `, cell(steps, row, 'step')), el('br'), cell(steps, row, 'total_ns'),
      ` (median of the ranks ${formatNs(medians[i])})`, el('br'),
      steps.at(row, 'device_busy_percent') === null ? '' : ['devices busy ', cell(steps, row, 'device_busy_percent')],
      causes.map(([cause, us]) => el('div', {}, el('i', {class: 'swatch', style: {background: causeVar(cause)}}), `${cause} ${formatNs(us * 1000)}`)));
  };
  overlay.on('pointermove', () => {
    const [px, py] = d3.mouse(overlay.node());
    const {x, w} = plot();
    tell(Math.floor((py - margin.top) / rowHeight), Math.floor(((px - x) / w) * columns), d3.event.clientX, d3.event.clientY);
  }).on('pointerleave', hideTip);
  canvas.canvas.addEventListener('keydown', (event) => {
    const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
    if (event.key === 'Escape') {
      cursor = null;
      selection.set(null, null);
    } else if (moves[event.key]) {
      event.preventDefault();
      const [r, i] = cursor || [0, -1];
      const from = cursor || [0, 0];
      cursor = [Math.max(0, Math.min(ranks - 1, r + moves[event.key][0])), Math.max(0, Math.min(columns - 1, i + moves[event.key][1]))];
      if (event.shiftKey) {
        const old = selection.active ? selection : {ranks: [from[0], from[0]], steps: [from[1], from[1]]};
        selection.set([Math.min(old.ranks[0], cursor[0]), Math.max(old.ranks[1], cursor[0])], [Math.min(old.steps[0], cursor[1]), Math.max(old.steps[1], cursor[1])]);
      }
      const box = canvas.canvas.getBoundingClientRect();
      const {x, w} = plot();
      tell(cursor[0], cursor[1], box.left + x + ((cursor[1] + 0.5) * w) / columns, box.top + margin.top + (cursor[0] + 1) * rowHeight);
    } else return;
    canvas.redraw();
  });
  const said = el('p', {class: 'selected-text', role: 'status'});
  const clear = el('button', {type: 'button', hidden: true, onclick: () => selection.set(null, null)}, 'clear selection');
  selection.onChange(() => {
    clear.hidden = !selection.active;
    said.textContent = !selection.active ? '' : describeSelection();
    canvas.redraw();
  });
  const modes = choice('colour by', [['time', 'step time'], ['excess', 'excess over the step’s median']], (picked) => {
    mode = picked;
    scale = null;
    canvas.redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { scale = null; canvas.redraw(); });
  return section('heatmap', 'Steps by rank', question, null, el('div', {class: 'tools'}, modes, key, said, clear), canvas.holder, notesOf(steps));
};

const stepNumber = (column) => {
  const rank = page.steps.find((of) => of.numbers[column] !== undefined);
  return rank ? rank.numbers[column] : column;
};
const describeSelection = () => {
  const [from, to] = selection.ranks.map((r) => page.steps[r].name);
  const [first, last] = selection.steps.map(stepNumber);
  return `${from === to ? from : `${from} to ${to}`}, ${first === last ? `step ${first}` : `steps ${first} to ${last}`}`;
};
