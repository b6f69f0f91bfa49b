// What each rank did at each moment, by cause; zoomed by keys, buttons, ctrl and wheel, or the selection.
const decodeLane = (rank) => {
  const parts = [];  // [letter's number, first bin, bins]
  let at = 0;
  for (const [, letter, count] of rank.bins.matchAll(/([a-z.])(\d*)/g)) {
    const bins = count === '' ? 1 : Number(count);
    if (letter !== '.') parts.push([letter.charCodeAt(0) - 97, rank.start_ns + at * rank.bin_ns, rank.start_ns + (at + bins) * rank.bin_ns]);
    at += bins;
  }
  return parts;
};
const seconds = (ns) => `${(ns / 1e9).toFixed(6).replace(/0+$/, '').replace(/\.$/, '')}s`;

const lanesSection = () => {
  const question = 'what each rank did, moment by moment';
  const lanes = page.lanes.ranks.map((rank) => ({...rank, parts: decodeLane(rank)}));
  if (lanes.length === 0 || lanes.every((lane) => lane.parts.length === 0)) {
    return emptySection('lanes', 'Lanes', question, 'Nothing has a time. Record kernels with --level kernels, PyTorch on a CPU with --level full.');
  }
  const causes = page.lanes.causes;
  const used = [...new Set(lanes.flatMap((lane) => lane.parts.map((part) => part[0])))].sort((a, b) => a - b);
  const whole = [d3.min(lanes, (lane) => lane.parts.length ? lane.parts[0][1] : Infinity), d3.max(lanes, (lane) => lane.parts.length ? lane.parts[lane.parts.length - 1][2] : 0)];
  let view = [...whole];
  let shown = lanes;
  const margin = {left: 54, right: 4, top: 18};
  const laneHeight = Math.max(7, Math.min(30, Math.floor(520 / lanes.length)));
  let width = 0;
  const scaleX = () => d3.scaleLinear().domain(view).range([margin.left, Math.max(margin.left + 1, width - margin.right)]);
  const bisect = d3.bisector((part) => part[2]).right;
  const ticks = (context, x) => {
    context.fillStyle = cssColour('--muted');
    context.strokeStyle = cssColour('--line');
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const tick of x.ticks(Math.max(2, Math.floor(width / 110)))) {
      context.beginPath();
      context.moveTo(x(tick), margin.top - 4);
      context.lineTo(x(tick), margin.top + shown.length * laneHeight);
      context.stroke();
      context.fillText(formatTick(tick, view[1] - view[0]), Math.min(width - 24, x(tick)), 8);
    }
  };
  const paint = (context, w) => {
    width = w;
    const x = scaleX();
    const colours = causes.map(causeColour);
    ticks(context, x);
    shown.forEach((lane, r) => {
      const y = margin.top + r * laneHeight;
      context.fillStyle = cssColour('--muted');
      context.textAlign = 'right';
      if (r % Math.ceil(14 / laneHeight) === 0) context.fillText(labelOf(lane), margin.left - 6, y + laneHeight / 2);
      // What is thinner than a pixel is painted once a pixel.
      let painted = -1;
      for (let i = bisect(lane.parts, view[0]); i < lane.parts.length && lane.parts[i][1] < view[1]; ++i) {
        const [cause, from, until] = lane.parts[i];
        const left = Math.max(margin.left, x(from));
        const right = Math.min(width - margin.right, x(until));
        if (right - painted < 0.5) continue;
        context.fillStyle = colours[cause];
        context.fillRect(left, y, Math.max(0.6, right - left), laneHeight - (laneHeight > 9 ? 2 : 1));
        painted = right;
      }
    });
    exportCommand.firstChild.textContent = `ranktap export ${page.run.path || 'RUN'} --format perfetto --window ${seconds(view[0])}:${seconds(view[1])} -o window.pftrace`;
  };
  const canvas = canvasIn(margin.top + lanes.length * laneHeight + 2, paint, {id: 'lanes-canvas', tabindex: '0', role: 'application',
    'aria-label': `lanes of ${lanes.length} ranks. Plus and minus zoom, arrow keys move, 0 shows all.`});
  const fit = () => { canvas.resize(margin.top + Math.max(1, shown.length) * laneHeight + 2); };
  const exportCommand = command('');
  const show = (from, to) => {
    const least = Math.min(1000, whole[1] - whole[0]);
    const length = Math.max(least, Math.min(to - from, whole[1] - whole[0]));
    const start = Math.max(whole[0], Math.min(from, whole[1] - length));
    view = [start, start + length];
    canvas.redraw();
  };
  const zoom = (factor, centre = (view[0] + view[1]) / 2) => show(centre - (centre - view[0]) * factor, centre + (view[1] - centre) * factor);
  const pan = (share) => show(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
  canvas.canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;  // else the page scrolls, as people expect
    event.preventDefault();
    zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, scaleX().invert(event.offsetX));
  }, {passive: false});
  canvas.canvas.addEventListener('keydown', (event) => {
    const keys = {'+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1.6), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), '0': () => show(...whole), Escape: () => show(...whole)};
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  let drag = null;
  canvas.canvas.addEventListener('pointerdown', (event) => {
    drag = {x: event.offsetX, view: [...view]};
    canvas.canvas.setPointerCapture(event.pointerId);
  });
  canvas.canvas.addEventListener('pointerup', () => { drag = null; });
  canvas.canvas.addEventListener('pointerleave', hideTip);
  canvas.canvas.addEventListener('dblclick', (event) => zoom(0.4, scaleX().invert(event.offsetX)));
  canvas.canvas.addEventListener('pointermove', (event) => {
    if (drag !== null) {
      const perPixel = (drag.view[1] - drag.view[0]) / (width - margin.left - margin.right);
      return void show(drag.view[0] - (event.offsetX - drag.x) * perPixel, drag.view[1] - (event.offsetX - drag.x) * perPixel);
    }
    const lane = shown[Math.floor((event.offsetY - margin.top) / laneHeight)];
    const time = scaleX().invert(event.offsetX);
    const part = lane && lane.parts[bisect(lane.parts, time)];
    if (!part || part[1] > time) return void hideTip();
    showTip(event.clientX, event.clientY, el('strong', {}, `${lane.name}: ${causes[part[0]]}`), el('br'), `at ${formatNs(time)}, for about ${formatNs(part[2] - part[1])}`, el('br'), CAUSE_MEANING[causes[part[0]]] || '');
  });
  selection.onChange(() => {
    shown = lanes;
    if (!selection.active) {
      fit();
      return void show(...whole);
    }
    const inside = page.steps.filter((_, r) => selection.hasRank(r));
    const traces = new Set(inside.map((rank) => rank.trace));
    shown = lanes.filter((lane) => traces.has(lane.trace));
    const last = (rank) => Math.min(selection.steps[1], rank.us.length - 1);
    fit();
    show(d3.min(inside, (rank) => rank.start_us[selection.steps[0]]) * 1000, d3.max(inside, (rank) => rank.start_us[last(rank)] + rank.us[last(rank)]) * 1000);
  });
  const buttons = el('div', {class: 'choice', role: 'group', 'aria-label': 'zoom'},
    [['−', () => zoom(1.6), 'zoom out'], ['+', () => zoom(0.6), 'zoom in'], ['◀', () => pan(-0.25), 'earlier'], ['▶', () => pan(0.25), 'later'], ['all', () => show(...whole), 'show all']].map(([text, act, label]) =>
      el('button', {type: 'button', 'aria-label': label, onclick: act}, text)));
  return section('lanes', 'Lanes', question, 'selection', el('div', {class: 'tools'}, buttons, legend(used.map((cause) => causes[cause]))), canvas.holder,
    el('p', {class: 'hint'}, 'Drag to move, double-click or ctrl+wheel to zoom. This window in Perfetto: ', exportCommand));
};
const formatTick = (ns, span) => {
  const [unit, size] = span >= 3e9 ? ['s', 1e9] : span >= 3e6 ? ['ms', 1e6] : span >= 3e3 ? ['µs', 1e3] : ['ns', 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(span / size / 8)));
  return `${(ns / size).toFixed(Math.min(digits, 6))} ${unit}`;
};
