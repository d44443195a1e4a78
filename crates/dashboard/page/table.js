// A table whose rows are kept: cells change their text and nothing else moves. Heads are buttons that sort.

import { arrange, h, mark, say } from './draw.js';

/**
 * Columns have a `title`, `value(row)` to sort by, `cell()` that makes an element and `show(element, row)` that fills it; or `text(row)`
 * for cells that are only text. `kind` is 'number' for what is aligned to the right.
 */
export class Table {
  constructor({ caption, columns, key, sort, empty }) {
    Object.assign(this, { columns, key, order: sort, empty });
    this.rows = new Map();
    this.heads = columns.map((column) => {
      const button = h('button', { type: 'button', onclick: () => this.sortBy(column) }, column.title);
      const head = h('th', { scope: 'col', class: this.kind(column), title: column.about }, column.value ? button : column.title);
      return head;
    });
    this.body = h('tbody');
    const table = h('table', null, h('caption', { class: 'hidden' }, caption), h('thead', null, h('tr', null, ...this.heads)), this.body);
    this.nothing = h('p', { class: 'nothing' });
    this.element = h('div', null, h('div', { class: 'scroll' }, table), this.nothing);
    this.showOrder();
  }

  kind(column) {
    return [column.kind, column.wide != null && `wide-${column.wide}`].filter(Boolean).join(' ');
  }

  sortBy(column) {
    const down = this.order?.column === column.name ? !this.order.down : column.kind === 'number';
    this.order = { column: column.name, down };
    this.showOrder();
    this.update(this.last);
  }

  showOrder() {
    this.columns.forEach((column, at) => {
      const own = this.order?.column === column.name;
      mark(this.heads[at], 'aria-sort', own ? (this.order.down ? 'descending' : 'ascending') : null);
    });
  }

  sorted(rows) {
    const column = this.columns.find((column) => column.name === this.order?.column);
    if (!column) return rows;
    const compare = (one, other) => {
      const [a, b] = [column.value(one), column.value(other)];
      // What is not known comes last, whichever way.
      if (a == null || b == null) return (a == null) - (b == null);
      const order = typeof a === 'string' ? a.localeCompare(b) : a - b;
      return this.order.down ? -order : order;
    };
    return [...rows].sort((one, other) => compare(one, other) || (one.name ?? '').localeCompare(other.name ?? '') || this.key(one).localeCompare(this.key(other)));
  }

  update(rows) {
    this.last = rows;
    const focused = document.activeElement;
    const shown = this.sorted(rows).map((row) => this.row(row));
    const kept = new Set(shown);
    for (const [key, row] of this.rows) if (!kept.has(row)) this.rows.delete(key);
    arrange(this.body, shown.map((row) => row.element));
    // Moving a row takes the focus from what is inside.
    if (focused !== document.activeElement && this.body.contains(focused)) focused.focus();
    this.element.firstChild.hidden = rows.length === 0;
    this.nothing.hidden = rows.length > 0;
    if (rows.length === 0) this.nothing.replaceChildren(...[this.empty()].flat());
  }

  row(data) {
    const key = this.key(data);
    let row = this.rows.get(key);
    if (!row) {
      const cells = this.columns.map((column, at) => {
        const head = at === 0;
        return h(head ? 'th' : 'td', { class: this.kind(column), scope: head ? 'row' : null }, column.cell?.());
      });
      row = { element: h('tr', null, ...cells), cells };
      this.rows.set(key, row);
    }
    this.columns.forEach((column, at) => {
      const cell = row.cells[at];
      if (column.show) column.show(cell.firstElementChild ?? cell, data, cell);
      else say(cell, column.text(data));
    });
    return row;
  }
}

/** A box that filters, and says how many are left. */
export function filterBox(placeholder, onchange) {
  const input = h('input', { type: 'search', id: 'filter', autocomplete: 'off', spellcheck: 'false', placeholder });
  const left = h('span', { class: 'soft', 'aria-live': 'polite' });
  input.addEventListener('input', onchange);
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    if (input.value) {
      input.value = '';
      onchange();
    } else input.blur();
  });
  return {
    element: h('div', { class: 'filter' }, left, h('label', { for: 'filter' }, 'Filter'), input),
    matches(text) {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      return words.every((word) => text.toLowerCase().includes(word));
    },
    count(shown, of) {
      say(left, input.value ? `${shown} of ${of}` : '');
    },
  };
}
