// The page's data, and its tables as `ranktap report RUN NAME --format json` prints them.
export const page = JSON.parse(document.getElementById('data').textContent);

export class ReportTable {
  constructor(name, raw) {
    this.name = name;
    this.raw = raw || {title: '', columns: [], shown: 0, rows: 0, notes: []};
    this.columns = new Map(this.raw.columns.map((column) => [column.name, column]));
  }
  get title() { return this.raw.title; }
  get notes() { return this.raw.notes; }
  get count() { return this.raw.shown; }
  has(column) {
    const found = this.columns.get(column);
    return found !== undefined && found.values !== undefined;
  }
  at(row, column) {
    const found = this.columns.get(column);
    return found === undefined || found.values === undefined ? null : found.values[row];
  }
  unit(column) {
    const found = this.columns.get(column);
    return found === undefined ? 'text' : found.unit;
  }
  rowsWhere(accepts) {
    const rows = [];
    for (let row = 0; row < this.count; ++row) if (accepts(row)) rows.push(row);
    return rows;
  }
}

const tables = new Map(Object.entries(page.tables).map(([name, raw]) => [name, new ReportTable(name, raw)]));
export const tableOf = (name) => tables.get(name) || new ReportTable(name, null);
export const hasTable = (name) => tableOf(name).count > 0;

// Which ranks and steps the heat map's brush holds; null: all. Bounds are of its rows and columns.
export const selection = {
  ranks: null,
  steps: null,
  listeners: [],
  get active() { return this.ranks !== null; },
  hasRank(row) { return this.ranks === null || (row >= this.ranks[0] && row <= this.ranks[1]); },
  hasStep(column) { return this.steps === null || (column >= this.steps[0] && column <= this.steps[1]); },
  set(ranks, steps) {
    this.ranks = ranks;
    this.steps = steps;
    for (const listener of this.listeners) listener(this);
  },
  onChange(listener) { this.listeners.push(listener); },
};
