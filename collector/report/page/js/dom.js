// Elements. Texts of a run come in by textContent alone: a kernel's name is no markup.
import {selection} from './begin.js';
import {formatCell, headingOf} from './units.js';
import {noteView} from './view_state.js';

export const el = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
};
export const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A table's cell: what it says, and where it stands.
export const cell = (table, row, column, attributes = {}) => {
  const value = table.at(row, column);
  const attribute = {...attributes, 'data-cell': `${table.name}/${row}/${column}`, 'data-value': JSON.stringify(value)};
  if (typeof value === 'number') attribute.title = attribute.title ||
      `${headingOf(column)}: ${table.unit(column) === 'count' ? formatCell(column, value, 'count')
          : value.toLocaleString('en')} ${({ns: 'ns', bytes: 'bytes', percent: '%'})[table.unit(column)] || ''}`.trim();
  return el('span', attribute, formatCell(column, value, table.unit(column)));
};
export const titleOf = (table, attributes = {}) =>
    el('span', {...attributes, 'data-cell': `${table.name}/title`}, table.title);
export const notesOf = (table) => {
  if (table.notes.length === 0) return null;
  const list = el('ul', {class: 'notes'}, table.notes.map((note) => el('li', {}, note)));
  return table.notes.length <= 3 ? list : el('details', {}, el('summary', {}, `${table.notes.length} notes`), list);
};

export const sections = [];
// A card with a heading; `reach`: what the heat map's brush does to it.
export const section = (id, title, question, reach, ...children) => {
  const badge = reach === 'all' ? el('span', {class: 'badge whole', hidden: true}, 'whole run') : reach === 'selection'
    ? el('span', {class: 'badge selected', hidden: true}, 'selection') : null;
  const card = el('section', {id, class: 'card', 'aria-labelledby': `${id}-title`},
    el('header', {}, el('h2', {id: `${id}-title`}, el('a', {href: `#${id}`, class: 'anchor'}, title)), badge,
      el('p', {class: 'question'}, question)), children);
  if (badge !== null) selection.onChange(() => { badge.hidden = !selection.active; });
  sections.push({id, title});
  return card;
};
// A section that has nothing to show says what to record.
export const emptySections = new Set();
export const emptySection = (id, title, question, advice) => {
  emptySections.add(id);
  return section(id, title, question, null, el('p', {class: 'empty'}, advice));
};

// A file that was opened from a disk may have no clipboard: then the old way, by a selection.
const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const place = el('textarea', {class: 'sr'});
    document.body.append(place);
    place.value = text;
    place.select();
    document.execCommand('copy');
    place.remove();
  }
};
export const copyButton = (label, textOf) => {
  const button = el('button', {type: 'button', class: 'copy', onclick: async () => {
    await copyText(textOf());
    button.textContent = 'copied';
    setTimeout(() => { button.textContent = label; }, 1500);
  }}, label);
  return button;
};
export const command = (text) => {
  const code = el('code', {}, text);
  return el('span', {class: 'command'}, code, copyButton('copy', () => code.textContent));
};
export const shellWord = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);

// Buttons of which one is pressed, the first at first.
export const choice = (label, options, onPick) => {
  let picked = options[0][0];
  const pick = (value) => {
    if (!options.some(([of]) => of === value)) return;
    picked = value;
    buttons.forEach((button, b) => button.setAttribute('aria-pressed', String(options[b][0] === value)));
    onPick(value);
    noteView();
  };
  const buttons = options.map(([value, text], i) =>
    el('button', {type: 'button', 'aria-pressed': String(i === 0), onclick: () => pick(value)}, text));
  return {
    element: el('div', {class: 'choice', role: 'group', 'aria-label': label}, buttons),
    get: () => (picked === options[0][0] ? null : String(picked)),
    set: (value) => pick(value === null ? options[0][0] : value),
  };
};
// A field to search by, which "/" goes to.
export const searchField = (noun, onText) => {
  const input = el('input', {type: 'search', placeholder: `search ${noun}`, 'aria-label': `search ${noun}`,
    oninput: () => { onText(input.value.toLowerCase()); noteView(); }});
  return {
    element: input,
    get: () => input.value,
    set: (text) => { input.value = text || ''; onText(input.value.toLowerCase()); },
  };
};

export const tip = el('div', {id: 'tip', role: 'status', 'aria-live': 'polite', hidden: true});
export const showTip = (x, y, ...children) => {
  tip.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18)}px`;
};
export const hideTip = () => { tip.hidden = true; };
// Mouse and keyboard alike.
export const withTip = (element, content) => {
  element.addEventListener('pointermove', (event) => showTip(event.clientX, event.clientY, content()));
  element.addEventListener('pointerleave', hideTip);
  element.addEventListener('focus', () => {
    const box = element.getBoundingClientRect();
    showTip(box.left, box.bottom - 10, content());
  });
  element.addEventListener('blur', hideTip);
  return element;
};

// A canvas as wide as its place, sharp on any screen; draw(context, width, height).
export const canvasIn = (height, draw, attributes = {}) => {
  const canvas = el('canvas', attributes);
  const holder = el('div', {class: 'canvas', style: {height: `${height}px`}}, canvas);
  const redraw = () => {
    const width = holder.clientWidth;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  };
  new ResizeObserver(redraw).observe(holder);
  repaints.push(redraw);
  const resize = (wanted) => {
    height = wanted;
    holder.style.height = `${height}px`;
  };
  return {holder, canvas, redraw, resize};
};
export const repaints = [];
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => repaints.forEach((paint) => paint()));

// Black or white, whichever is easier to read on it: 4.58:1 at least.
const lightOf = (colour) => {
  const {r, g, b} = d3.rgb(colour);
  const linear = (byte) => (byte <= 10 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
};
const inks = new Map();
export const inkOn = (colour) => {
  if (!inks.has(colour)) inks.set(colour, lightOf(colour) > 0.179 ? '#000' : '#fff');
  return inks.get(colour);
};
// Of one colour: the same time, of which it is not known how much is transfer.
const causeProperty = (cause) => `--cause-${(cause === 'exposed communication' ? 'exposed transfer' : cause).replace(/ /g, '-')}`;
export const causeColour = (cause) => cssColour(causeProperty(cause)) || cssColour('--muted');
export const causeVar = (cause) => `var(${causeProperty(cause)})`;
export const CAUSE_MEANING = {
  'compute': 'a compute kernel runs',
  'exposed transfer': 'a collective moves data, and nothing computes meanwhile',
  'exposed communication': 'a collective runs, and nothing computes meanwhile; how much of it is waiting is not known',
  'exposed wait': 'a collective runs, but its last member has not arrived yet',
  'memory copy': 'only copies or memsets run',
  'not recorded': 'capture was off',
  'checkpoint': 'idle: the host saved a checkpoint',
  'garbage collection': 'idle: Python collected garbage',
  'data loading': 'idle: the host was in the data loader',
  'graph capture': 'idle: the host captured a CUDA graph',
  'sync': 'idle: the host had waited for the device and launched nothing',
  'host': 'idle: the host was busy otherwise and launched too late',
  'kernel latency': 'idle for less than 30 µs with the next work launched already',
  'dependency': 'idle with work launched: it waited for something',
  'optimizer': 'the host worked on the optimizer',
  'backward': 'the host worked on the backward pass',
  'forward': 'the host worked on the forward pass',
};
export const legend = (causes) => el('ul', {class: 'legend'}, causes.map((cause) =>
  el('li', {title: CAUSE_MEANING[cause] || null}, el('i', {style: {background: causeVar(cause)}}), cause)));
