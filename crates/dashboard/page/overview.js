// The first page: each GPU with its last minute, and all tenants.

import { arrange, badge, code, h, mark, nothing, say, sparkline } from './draw.js';
import { key, latest, listen, look, shares, state } from './state.js';
import { filterBox, Table } from './table.js';
import { timeline } from './timeline.js';
import * as words from './words.js';

export const address = (row) => `#/tenant/${row.gpu}/${row.tenant}`;

/** How an objective stands, in a word with a colour and a figure beside it. */
export function objective(row) {
  if (row.class !== 'latency') return { kind: 'plain', word: '', figures: '' };
  if (row.slo_ns == null) return { kind: 'plain', word: 'none set', figures: row.p99_ns == null ? '' : words.time(row.p99_ns) };
  const figures = `${words.time(row.p99_ns)} of ${words.time(row.slo_ns)}`;
  const kind = { kept: 'good', missed: 'bad', unattainable: 'bad' }[row.slo] ?? 'plain';
  return { kind, word: row.slo ?? 'no request yet', figures };
}

export function memory(row) {
  if (row.memory_used == null) return words.DASH;
  return row.memory_limit == null ? words.bytes(row.memory_used) : `${words.bytes(row.memory_used)} of ${words.bytes(row.memory_limit)}`;
}

/** The worse an objective stands, the further up. */
const badness = (row) => (row.slo == null ? null : ['kept', 'missed', 'unattainable'].indexOf(row.slo));

const columns = () => [
  {
    name: 'name', title: 'tenant', value: (row) => row.name.toLowerCase(),
    cell: () => h('div', { class: 'name' }, h('a', null), h('small', { class: 'narrow soft' })),
    show(element, row) {
      mark(element.firstChild, 'href', address(row));
      say(element.firstChild, row.name);
      say(element.lastChild, `${row.class} · ${row.state}`);
    },
  },
  {
    name: 'class', title: 'class', value: (row) => (row.class === 'latency' ? 0 : 1), wide: 1,
    cell: () => badge('', ''),
    show(element, row) {
      mark(element, 'class', `badge ${row.class}`);
      say(element, row.lowered ? `${row.class} *` : row.class);
      mark(element, 'title', row.lowered ? 'it asked for more than it may have' : null);
    },
  },
  {
    name: 'state', title: 'state', value: (row) => row.state, wide: 0,
    cell: () => h('span', { class: 'state' }),
    show(element, row) {
      say(element, row.state);
      mark(element, 'data-state', row.state);
      mark(element, 'title', words.STATES[row.state]);
    },
  },
  {
    name: 'gpu', title: 'GPU', kind: 'number', about: 'share of GPU time in the last second', value: (row) => latest()?.shares.get(key(row))?.share,
    text: (row) => words.share(latest()?.shares.get(key(row))?.share),
  },
  {
    name: 'lately', title: 'last 60 s', wide: 1,
    cell() {
      const spark = sparkline();
      spark.element.spark = spark;
      return spark.element;
    },
    show(element, row) {
      element.spark.update(shares(row));
      mark(element, 'class', `spark ${look(row)}`);
    },
  },
  {
    name: 'slo', title: 'objective (p99)', value: badness,
    cell: () => h('span', { class: 'objective' }, badge('', ''), h('span', { class: 'figures' })),
    show(element, row) {
      const { kind, word, figures } = objective(row);
      mark(element.firstChild, 'class', `badge ${kind}`);
      element.firstChild.hidden = !word;
      say(element.firstChild, word);
      say(element.lastChild, row.class === 'latency' ? figures : words.DASH);
    },
  },
  { name: 'slowdown', title: 'slowdown', kind: 'number', wide: 1, about: 'p99 of requests over what it is alone', value: (row) => row.slowdown_permille, text: (row) => (row.alone_samples ? words.unknown(row.alone_samples) : words.slowdown(row.slowdown_permille)) },
  { name: 'stop', title: 'stop p99', kind: 'number', wide: 2, about: 'what 99 of 100 stops stay below', value: (row) => row.stop_p99_ns, text: (row) => words.time(row.stop_p99_ns) },
  { name: 'wait', title: 'wait p99', kind: 'number', wide: 2, about: 'what 99 of 100 waits for a turn stay below', value: (row) => row.wait_p99_ns, text: (row) => words.time(row.wait_p99_ns) },
  { name: 'memory', title: 'memory', kind: 'number', wide: 2, value: (row) => row.memory_used, text: memory },
];

/** A GPU: how its time is used now, and its last minute. */
function gpuCard(card) {
  const figure = (kind, title) => {
    const value = h('b', null, words.DASH);
    return { value, element: h('div', { class: `figure ${kind}` }, value, h('span', null, title)) };
  };
  const parts = { latency: figure('latency', 'latency tenants'), best_effort: figure('best-effort', 'harvested by best-effort'), idle: figure('idle', 'idle') };
  const bars = Object.fromEntries(Object.keys(parts).map((part) => [part, h('span', { class: part })]));
  const title = h('h2', null, words.gpu(card));
  const facts = h('dl', { class: 'facts' });
  const health = h('p', { class: 'health' });
  const minute = timeline(card);
  const element = h('section', { class: 'gpu' },
    h('div', { class: 'side' }, title, health,
      h('div', { class: 'bar', 'aria-hidden': 'true' }, ...Object.values(bars)),
      h('div', { class: 'figures' }, ...Object.values(parts).map((part) => part.element)), facts),
    minute.element);
  return {
    element,
    close: minute.close,
    update(card) {
      const load = latest()?.loads.find((load) => load.gpu === card.uuid);
      for (const part of Object.keys(parts)) {
        say(parts[part].value, words.share(load?.[part]));
        bars[part].style.setProperty('flex-grow', load?.[part] ?? 0);
      }
      const well = card.degraded.length === 0;
      mark(health, 'class', `health ${well ? 'good' : 'bad'}`);
      say(health, well ? 'works as it should' : `degraded: ${card.degraded.join('; ')}`);
      const told = [['GPU', card.uuid], ['domain', card.domain], ['policy', card.policy ?? 'none'], ['token', card.domain === 'shared' ? 'not needed: all run at once' : (card.token ?? 'free')]];
      if (facts.children.length !== told.length * 2) facts.replaceChildren(...told.flatMap(([name]) => [h('dt', null, name), h('dd')]));
      told.forEach(([, value], at) => say(facts.children[2 * at + 1], value));
      minute.update();
    },
  };
}

export function overview(main) {
  const cards = new Map();
  const gpus = h('div', { class: 'gpus' });
  const trouble = h('ul');
  const troubles = h('section', { class: 'trouble', 'aria-label': 'What is not as it should be' }, h('h2', null, 'Not as it should be'), trouble);
  const filter = filterBox('name, class, state …', () => update());
  const table = new Table({
    caption: 'Tenants', key, sort: { column: 'class', down: false },
    columns: columns(),
    empty: () => (state.rows.size ? 'No tenant matches the filter.' : ['No tenant is on a GPU now. Start one with ', code('ebb run -- COMMAND'), '; it appears here with its first CUDA context.']),
  });
  const tenants = h('section', null, h('div', { class: 'head' }, h('h2', null, 'Tenants'), filter.element), table.element);
  const idle = nothing('No GPU has a tenant now. What is shared is seen here from the first ', code('ebb run -- COMMAND'), ' on.');
  main.append(h('h1', { class: 'hidden' }, 'Overview'), troubles, gpus, tenants);

  table.element.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...table.body.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    links[Math.min(links.length - 1, Math.max(0, at + step))].focus();
  });

  function update() {
    if (!state.ready) return;
    for (const card of state.gpus) if (!cards.has(card.uuid)) cards.set(card.uuid, gpuCard(card));
    const there = state.gpus.map((card) => card.uuid);
    for (const [uuid, card] of cards) if (!there.includes(uuid)) (card.close(), cards.delete(uuid));
    arrange(gpus, there.length ? there.map((uuid) => cards.get(uuid).element) : [idle]);
    state.gpus.forEach((card) => cards.get(card.uuid).update(card));
    const rows = [...state.rows.values()];
    const shown = rows.filter((row) => filter.matches(`${row.name} ${row.class} ${row.state} ${row.slo ?? ''} ${row.gpu}`));
    filter.count(shown.length, rows.length);
    table.update(shown);
    troubles.hidden = state.sentences.length === 0;
    if (trouble.children.length !== state.sentences.length) trouble.replaceChildren(...state.sentences.map(() => h('li')));
    state.sentences.forEach((sentence, at) => say(trouble.children[at], sentence));
  }

  const stop = listen(update);
  update();
  return {
    title: 'Overview',
    close() {
      stop();
      cards.forEach((card) => card.close());
    },
    /** Arrows begin at the first tenant. */
    enter: () => table.body.querySelector('a')?.focus(),
  };
}
