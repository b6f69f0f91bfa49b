// Puts the page together, the first screen first.
import {page, selection, tableOf} from './begin.js';
import {cut} from './units.js';
import {copyButton, el, hideTip, inkOn, repaints, sections, tip} from './dom.js';
import {followFragment, linkToView} from './view_state.js';
import {keysDialog, listenToKeys} from './keys.js';
import {verdictSection} from './verdict.js';
import {figuresSection, waterfallSection} from './figures.js';
import {heatmapSection} from './heatmap.js';
import {waitsSection} from './waits.js';
import {lanesSection} from './lanes.js';
import {commSection} from './comm.js';
import {memorySection} from './memory.js';
import {modulesSection} from './modules.js';
import {rooflineSection} from './roofline.js';
import {kernelsSection, opsSection, timesInSelection} from './kernels.js';
import {insightsSection} from './insights.js';
import {flameSection} from './flame.js';
import {environmentSection} from './environment.js';
import {diffPage} from './diff.js';

const runName = (run) => (run.command.length > 0 ? run.command.join(' ')
    : run.path.replace(/\/$/, '').split('/').pop() || 'run');
const header = (title, subtitle) =>
    el('header', {class: 'top'}, el('div', {class: 'brand'}, el('b', {}, 'ranktap'),
    el('h1', {class: 'run', title: subtitle}, title)), el('nav', {'aria-label': 'sections'}));
const banner = (simulated) => (simulated
    ? el('p', {class: 'banner', role: 'note'}, 'Simulated GPU: times mean nothing.') : null);

const makers = [figuresSection, waterfallSection, heatmapSection, waitsSection, lanesSection, commSection,
    memorySection, modulesSection, rooflineSection, kernelsSection, opsSection, insightsSection, flameSection,
    environmentSection];
// A picture that fails takes no other with it.
const made = (maker) => {
  try {
    return maker();
  } catch (error) {
    console.error(maker.name, error);
    return el('section', {class: 'card'}, el('p', {class: 'empty'}, `This part could not be drawn: ${error.message}`));
  }
};

// For the browser's console, and the tests: the one name that the page gives the window.
window.ranktap = {page, selection, tableOf, timesInSelection, inkOn};

const start = () => {
  const isDiff = page.kind === 'diff';
  const main = el('main');
  const title = isDiff ? `${runName(page.before.run)} → ${runName(page.after.run)}` : runName(page.run);
  document.title = `${cut(title, 60)} · ranktap`;
  const top = header(title, isDiff ? '' : page.run.path);
  document.body.append(el('a', {href: '#verdict', class: 'skip'}, 'to the verdict'), top, main, tip);
  if (isDiff) {
    main.append(...[banner(page.before.run.simulated || page.after.run.simulated)].filter(Boolean), ...diffPage());
  } else {
    main.append(...[banner(page.run.simulated)].filter(Boolean), verdictSection(), ...makers.map(made));
  }
  const links = page.links || {};
  const keys = keysDialog(isDiff);
  top.firstChild.append(el('span', {class: 'links'},
      links.runs ? el('a', {href: links.runs}, 'all runs') : null,
      links.perfetto ? el('a', {href: links.perfetto}, 'open in Perfetto') : null,
      copyButton('copy link', linkToView), el('button', {type: 'button', class: 'copy', 'aria-label': 'keys',
      onclick: () => keys.showModal()}, '?')));
  document.body.append(keys);
  listenToKeys(keys);
  top.lastChild.append(...sections.map(({id, title: text}) => el('a', {href: `#${id}`}, text)));
  main.append(el('footer', {},
    'Made by ranktap. This file holds all of its data and reaches no network. Numbers are those of ',
    el('code', {}, 'ranktap report RUN NAME --format json'), '.'));
  addEventListener('keydown', (event) => { if (event.key === 'Escape') hideTip(); });
  followFragment();
  addEventListener('beforeprint', () => repaints.forEach((paint) => paint()));
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = performance.now()
      .toFixed(0); }));
};
start();
