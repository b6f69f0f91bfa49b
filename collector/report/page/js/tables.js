// A table that sorts, filters and shows more rows when asked.
import {headingOf, isNameOfOne} from './units.js';
import {cell, el, notesOf, searchField} from './dom.js';
import {noteView, remember} from './view_state.js';

const ROWS_AT_FIRST = 15;

export const dataTable = (table, options = {}) => {
  // A column in which nothing but zeros or no word stands says nothing.
  const says = (column) => table.has(column) && (options.columns === undefined ||
      table.rowsWhere((row) => table.at(row, column)).length > 0 ||
      (isNameOfOne(column) && table.unit(column) !== 'text'));
  const columns = (options.columns || [...table.columns.keys()]).filter(says);
  const extra = options.extra || [];  // {name, value: (row) => [number, text]}
  const state = {sort: null, down: true, text: '', more: false, accepts: () => true};
  const body = el('tbody');
  const count = el('span', {class: 'count', role: 'status'});
  const more = el('button', {type: 'button', class: 'more', onclick: () => { state.more = !state.more; draw(); }});
  const texts = columns.filter((column) => table.unit(column) === 'text');
  const isText = (column) => table.unit(column) === 'text';

  const compare = (a, b) => {
    if (state.sort === null) return a - b;
    const of = extra.find((column) => column.name === state.sort);
    const x = of ? of.value(a)[0] : table.at(a, state.sort);
    const y = of ? of.value(b)[0] : table.at(b, state.sort);
    if (x === y) return a - b;
    if (x === null) return 1;
    if (y === null) return -1;
    return (x < y ? -1 : 1) * (state.down ? -1 : 1);
  };
  const rowOf = (row) => el('tr', {}, columns.map((column) => {
    if (!isText(column)) return el('td', {class: options.classOf ? options.classOf(row, column) : null},
        cell(table, row, column));
    const value = table.at(row, column) || '';
    const long = value.length > 44;
    const shown = cell(table, row, column, {class: long ? 'long' : null, title: long ? value : null});
    if (!long || !options.shorten) return el('td', {class: 'text'}, shown);
    shown.textContent = options.shorten(value);
    shown.classList.remove('long');
    return el('td', {class: 'text'}, shown);
  }), extra.map((column) => el('td', {class: 'extra'}, column.value(row)[1])));

  const draw = () => {
    const wanted = state.text;
    const rows = table.rowsWhere((row) => state.accepts(row) &&
      (wanted === '' || texts.some((column) => (table.at(row, column) || '').toLowerCase().includes(wanted))));
    rows.sort(compare);
    const shown = state.more ? rows.slice(0, 1000) : rows.slice(0, ROWS_AT_FIRST);
    body.replaceChildren(...shown.map(rowOf));
    const whole = table.raw.rows > table.count
        ? ` of the first ${table.count.toLocaleString('en')} of ${table.raw.rows.toLocaleString('en')}` : '';
    count.textContent = `${rows.length.toLocaleString('en')} ${rows.length === 1 ? 'row' : 'rows'}${whole}`;
    more.hidden = rows.length <= ROWS_AT_FIRST;
    more.textContent = state.more ? 'show fewer' : `show ${Math.min(rows.length, 1000) - ROWS_AT_FIRST} more`;
    for (const head of heads) {
      head.setAttribute('aria-sort',
          head.dataset.column === state.sort ? (state.down ? 'descending' : 'ascending') : 'none');
    }
  };
  const headOf = (name, text) =>
      el('th', {scope: 'col', class: text ? 'text' : null, 'data-column': name, 'aria-sort': 'none'},
    el('button', {type: 'button', onclick: () => {
      state.down = state.sort === name ? !state.down : !text;
      state.sort = name;
      draw();
      noteView();
    }}, headingOf(name)));
  const heads = [...columns.map((column) => headOf(column, isText(column))),
      ...extra.map((column) => headOf(column.name, false))];
  const search = searchField(options.noun || 'rows', (text) => {
    state.text = text;
    draw();
    if (options.onSearch) options.onSearch(text);
  });
  const isSearched = table.count > ROWS_AT_FIRST || options.search;
  if (isSearched) remember(`q.${table.name}`, search.get, search.set);
  remember(`sort.${table.name}`, () => (state.sort === null ? null : `${state.down ? '-' : ''}${state.sort}`),
      (text) => {
    const name = (text || '').replace(/^-/, '');
    state.sort = heads.some((head) => head.dataset.column === name) ? name : null;
    state.down = text !== null && text.startsWith('-');
    draw();
  });
  const element = el('div', {class: 'table'},
    el('div', {class: 'tools'}, isSearched ? search.element : null, options.tools || null,
        count),
    el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': table.title},
      el('table', {}, el('thead', {}, el('tr', {}, heads)), body)), more,
          options.notes === false ? null : notesOf(table));
  draw();
  return {element, redraw: draw, accept: (accepts) => { state.accepts = accepts; draw(); }};
};
