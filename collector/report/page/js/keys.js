// Keys that work everywhere on the page.
import {el} from './dom.js';

const KEYS = [['/', 'search what is on the screen'], ['?', 'this list'], ['Escape', 'closes a tip, clears a selection'],
  ['Tab', 'goes to the next picture, table or button']];
const RUN_KEYS = [['← → ↑ ↓', 'heat map: move; with shift: select. Flame graph and modules: go to a part'],
  ['+ −', 'lanes: zoom. ← → move, 0 shows all, ctrl and wheel zooms'],
  ['Enter', 'in the search for names: goes to the next']];

export const keysDialog = (isDiff) => {
  const rows = [...KEYS, ...(isDiff ? [] : RUN_KEYS)];
  const dialog = el('dialog', {id: 'keys', 'aria-labelledby': 'keys-title'}, el('h2', {id: 'keys-title'}, 'Keys'),
      el('dl', {class: 'facts'}, rows.flatMap(([key, text]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, text)])),
      el('p', {class: 'hint'}, 'The address holds what you look at: copy link copies it.'),
      el('button', {type: 'button', onclick: () => dialog.close()}, 'close'));
  return dialog;
};

// The search field of the section in the middle of the screen, else the first below it.
const fieldInView = () => {
  const fields = [...document.querySelectorAll('main input[type=search]')];
  const holds = (field) => {
    const box = field.closest('section').getBoundingClientRect();
    return box.top <= innerHeight / 2 && box.bottom >= innerHeight / 2;
  };
  return fields.find(holds) || fields.find((field) => field.getBoundingClientRect().top > 0) || fields[0];
};
export const listenToKeys = (dialog) => addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === '?') dialog.showModal();
  else if (event.key === '/') {
    const field = fieldInView();
    if (field === undefined) return;
    event.preventDefault();
    field.focus();
  }
});
