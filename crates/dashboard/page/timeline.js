// The last minute of a GPU: who had it, second by second. Latency tenants lie at the bottom in cool colours, best-effort tenants on
// top in warm ones with stripes, so that nobody needs the colours; what is left is idle.

import { h, mark, onWidth, s, say } from './draw.js';
import { key, latest, look, SPAN, state } from './state.js';
import { share } from './words.js';

const HEIGHT = 226;
const LEFT = 44;
const BOTTOM = 24;
const TOP = 8;
let charts = 0;

/** Who is drawn, in which place; a tenant that has gone stays until it is out of the picture. */
class Cast {
  constructor(gpu) {
    this.gpu = gpu;
    this.known = new Map();
  }

  series() {
    for (const row of state.rows.values()) {
      if (row.gpu !== this.gpu) continue;
      this.known.set(key(row), { key: key(row), name: row.name, class: row.class, look: look(row) });
    }
    for (const one of this.known.values()) {
      const seen = state.moments.some((moment) => moment.shares.has(one.key));
      if (!seen && !state.rows.has(one.key)) this.known.delete(one.key);
    }
    const rank = (one) => (one.class === 'latency' ? 0 : 1);
    return [...this.known.values()].sort((one, other) => rank(one) - rank(other) || one.look.localeCompare(other.look) || one.name.localeCompare(other.name));
  }
}

export function timeline(card) {
  const cast = new Cast(card.uuid);
  const id = `stripes-${(charts += 1)}`;
  const stripes = s('pattern', { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, s('rect', { class: 'stripe', width: 2, height: 6 }));
  const layers = s('g');
  const axis = s('g', { class: 'axis' });
  const cursor = s('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, hidden: '' });
  const svg = s('svg', { class: 'timeline', height: HEIGHT, role: 'img', tabindex: 0 }, s('defs', null, stripes), axis, layers, cursor);
  const legend = h('ul', { class: 'legend' });
  const when = h('p', { class: 'when soft' });
  const table = h('tbody');
  const details = h('details', null, h('summary', null, 'This timeline as a table'),
    h('div', { class: 'scroll' }, h('table', null, h('caption', { class: 'hidden' }, 'Share of GPU time of each tenant in the last minute'),
      h('thead', null, h('tr', null, ...['tenant', 'class', 'now', 'last 10 s', 'last 60 s', 'most'].map((title, at) => h('th', { scope: 'col', class: at > 1 ? 'number' : null }, title)))), table)));
  const element = h('figure', { class: 'minute' }, h('figcaption', null, h('span', null, 'Share of GPU time, last 60 s'), when), svg, legend, details);
  let width = 0;
  let at = null;

  const x = (unix, now) => LEFT + ((unix - now + SPAN) / SPAN) * (width - LEFT);
  const release = onWidth(element, (wide) => {
    width = Math.max(200, Math.floor(wide));
    mark(svg, 'width', width);
    update();
  });

  function grid(most) {
    const y = (part) => TOP + (1 - Math.min(1, part / most)) * (HEIGHT - TOP - BOTTOM);
    const lines = (most > 1 ? [0, 1, most] : [0, 0.5, 1]).map((part) => [
      s('line', { x1: LEFT, x2: width, y1: y(part), y2: y(part) }),
      s('text', { x: LEFT - 8, y: y(part) + 4, class: 'end' }, `${part * 100} %`),
    ]);
    const every = width < 420 ? 30 : 15;
    const times = [];
    for (let ago = 60; ago >= 0; ago -= every) {
      const place = ago === 60 ? 'start' : ago === 0 ? 'end' : 'mid';
      times.push(s('text', { x: x(-ago * 1000, 0), y: HEIGHT - 6, class: place }, ago ? `${ago} s ago` : 'now'));
    }
    axis.replaceChildren(...lines.flat(), ...times);
    return y;
  }

  function draw(series, moments, now) {
    const sums = moments.map((moment) => series.reduce((sum, one) => sum + (moment.shares.get(one.key)?.share ?? 0), 0) / 1000);
    // Where all run at once the sum is more than the whole; a little more is only how it was sampled.
    const sum = Math.max(1, ...sums);
    const y = grid(sum > 1.2 ? Math.ceil(2 * sum) / 2 : 1);
    const below = moments.map(() => 0);
    const paths = series.map((one) => {
      let up = '';
      let down = '';
      moments.forEach((moment, place) => {
        const begin = x(place ? moments[place - 1].unix_ms : moment.unix_ms - 1000, now);
        const [from, to] = [Math.max(LEFT, begin).toFixed(1), Math.max(LEFT, x(moment.unix_ms, now)).toFixed(1)];
        const low = below[place];
        below[place] += (moment.shares.get(one.key)?.share ?? 0) / 1000;
        const [bottom, top] = [y(low).toFixed(1), y(below[place]).toFixed(1)];
        up += `${place ? 'L' : 'M'}${from} ${top}L${to} ${top}`;
        down = `L${to} ${bottom}L${from} ${bottom}${down}`;
      });
      const d = moments.length ? `${up}${down}Z` : '';
      const solid = s('path', { d, class: `layer ${one.class} ${one.look}` });
      return one.class === 'latency' ? [solid] : [solid, s('path', { d, fill: `url(#${id})` })];
    });
    layers.replaceChildren(...paths.flat());
  }

  /** The moment under the cursor, or the last one. */
  function chosen(now) {
    const found = at == null ? latest() : state.moments.find((moment) => moment.unix_ms >= now - at * 1000);
    return found ?? latest();
  }

  function tell(series, now) {
    const moment = chosen(now);
    const items = series.map((one) => {
      const value = moment?.shares.get(one.key)?.share;
      return h('li', { class: one.look }, h('span', { class: `swatch ${one.class}` }), h('span', null, one.name), h('b', null, share(value ?? 0)));
    });
    const load = moment?.loads.find((load) => load.gpu === card.uuid);
    if (load) items.push(h('li', { class: 'rest' }, h('span', { class: 'swatch' }), h('span', null, 'idle'), h('b', null, share(load.idle))));
    legend.replaceChildren(...items);
    const seen = Math.round((now - (state.moments[0]?.unix_ms ?? now)) / 1000);
    say(when, at == null ? (seen < 55 ? `seen for ${seen} s: nobody looked before` : 'now') : `${at} s ago`);
    mark(cursor, 'hidden', at == null ? '' : null);
    if (at != null) for (const end of ['x1', 'x2']) mark(cursor, end, x(-at * 1000, 0).toFixed(1));
    const words = items.map((item) => item.textContent.replace(/(\d|<)/, ' $1')).join(', ');
    mark(svg, 'aria-label', `Share of GPU time, ${at == null ? 'now' : `${at} seconds ago`}: ${words}`);
  }

  function list(series) {
    const rows = series.map((one) => {
      const values = state.moments.map((moment) => moment.shares.get(one.key)?.share).filter((value) => value != null);
      const mean = (some) => (some.length ? some.reduce((sum, value) => sum + value, 0) / some.length : null);
      const figures = [values.at(-1), mean(values.slice(-10)), mean(values), values.length ? Math.max(...values) : null];
      return h('tr', null, h('th', { scope: 'row' }, one.name), h('td', null, one.class), ...figures.map((value) => h('td', { class: 'number' }, share(value))));
    });
    table.replaceChildren(...rows);
  }

  function update() {
    if (!width) return;
    const now = latest()?.unix_ms ?? Date.now();
    const series = cast.series();
    // The first moment has nothing to compare with.
    draw(series, state.moments.filter((moment) => moment.loads.length), now);
    tell(series, now);
    if (details.open) list(series);
  }

  const point = (seconds) => {
    at = seconds == null ? null : Math.min(60, Math.max(0, seconds));
    update();
  };
  svg.addEventListener('pointermove', (event) => {
    const part = (event.clientX - svg.getBoundingClientRect().left - LEFT) / (width - LEFT);
    point(Math.round(60 * (1 - part)));
  });
  svg.addEventListener('pointerleave', () => point(null));
  svg.addEventListener('blur', () => point(null));
  svg.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    point((at ?? 0) + step);
  });
  details.addEventListener('toggle', update);
  return { element, update, close: release };
}
