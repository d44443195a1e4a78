// Verdicts about kernels, and the history of decisions.

import { badge, code, h, mark, say } from './draw.js';
import { fetchJson, listen, state } from './state.js';
import { filterBox, Table } from './table.js';
import * as words from './words.js';

const AGAIN = 3000;

const VERDICTS = {
  guard: ['good', 'guard', 'can be stopped between any two blocks'],
  ordered: ['good', 'ordered guard', 'can be stopped between blocks, in their order'],
  refuse: ['bad', 'refused', 'not between blocks, for the reason below'],
  unknown: ['plain', 'not looked at', 'of latency tenants, or where no guard is needed'],
};

export const kernelTable = (owner, empty) => {
  let whole = 1;
  const table = new Table({
    caption: 'Kernels', key: (kernel) => `${kernel.tenant} ${kernel.name} ${kernel.verdict} ${kernel.place}`, sort: { column: 'time', down: true }, empty,
    columns: [
      { name: 'name', title: 'kernel', value: (kernel) => kernel.name.toLowerCase(), cell: () => h('code'), show: (element, kernel) => (say(element, kernel.name), mark(element, 'title', kernel.name)) },
      ...(owner ? [{ name: 'owner', title: 'tenant', wide: 1, value: (kernel) => kernel.owner.toLowerCase(), text: (kernel) => kernel.owner }] : []),
      {
        name: 'verdict', title: 'verdict', value: (kernel) => Object.keys(VERDICTS).indexOf(kernel.verdict), cell: () => badge('', ''),
        show(element, kernel) {
          const [kind, word] = VERDICTS[kernel.verdict];
          mark(element, 'class', `badge ${kind}`);
          say(element, word);
        },
      },
      { name: 'why', title: 'what that means', kind: 'prose', wide: 1, text: (kernel) => kernel.words },
      { name: 'time', title: 'GPU time', kind: 'number', about: 'of all kernels here, as far as it was sampled', value: (kernel) => kernel.gpu_ns ?? -1, text: (kernel) => (kernel.gpu_ns == null ? words.DASH : words.share((1000 * kernel.gpu_ns) / whole)) },
      { name: 'launches', title: 'launches', kind: 'number', value: (kernel) => kernel.launches, text: (kernel) => words.count(kernel.launches) },
      { name: 'cut', title: 'cut', kind: 'number', wide: 2, about: 'launches that were stopped in their middle and finished later', value: (kernel) => kernel.cut, text: (kernel) => words.count(kernel.cut) },
      { name: 'stops', title: 'stops in', kind: 'number', wide: 1, about: 'the certificate: how long a stop takes, as promised', value: (kernel) => kernel.certificate_ns, text: (kernel) => words.time(kernel.certificate_ns) },
    ],
  });
  return {
    element: table.element,
    update(kernels) {
      whole = kernels.reduce((sum, kernel) => sum + (kernel.gpu_ns ?? 0), 0) || 1;
      const places = new Map();
      for (const kernel of kernels) {
        const name = `${kernel.tenant} ${kernel.name} ${kernel.verdict}`;
        places.set(name, (places.get(name) ?? 0) + 1);
        kernel.place = places.get(name);
      }
      return table;
    },
    show: (kernels) => table.update(kernels),
  };
};

/** How much of the GPU's time can be stopped in which way. */
function totals(kernels) {
  const whole = kernels.reduce((sum, kernel) => sum + (kernel.gpu_ns ?? 0), 0);
  const tiles = Object.entries(VERDICTS).map(([name, [kind, word, about]]) => {
    const own = kernels.filter((kernel) => kernel.verdict === name);
    const part = own.reduce((sum, kernel) => sum + (kernel.gpu_ns ?? 0), 0);
    return h('div', { class: `tile ${own.length ? kind : ''}` }, h('b', null, whole ? words.share((1000 * part) / whole) : words.DASH), h('span', null, h('strong', null, word), ` · ${own.length} ${own.length === 1 ? 'kernel' : 'kernels'}`), h('small', { class: 'soft' }, about));
  });
  return tiles;
}

export function verdicts(main) {
  let known = null;
  const sums = h('div', { class: 'tiles' });
  const remark = h('p', { class: 'soft' });
  const filter = filterBox('kernel, tenant, verdict …', () => show());
  const table = kernelTable(true, () => {
    if (!known) return 'Asking for the verdicts …';
    return known.kernels.length ? 'No kernel matches the filter.' : ['No kernel was launched yet by a tenant whose ledger can be read. Verdicts are made when a tenant loads its modules; ', code('ebb verdicts --all'), ' shows those of tenants that have ended.'];
  });
  main.append(h('h1', null, 'Verdicts'), h('p', { class: 'lead' }, 'Which kernels can be stopped between their blocks, which cannot, and why. The first figures are shares of sampled GPU time.'), sums, h('section', null, h('div', { class: 'head' }, h('h2', null, 'Kernels'), filter.element), table.element, remark));

  function show() {
    const kernels = known?.kernels ?? [];
    const shown = kernels.filter((kernel) => filter.matches(`${kernel.name} ${kernel.owner} ${kernel.verdict} ${kernel.words}`));
    filter.count(shown.length, kernels.length);
    table.show(shown);
  }

  async function load() {
    const found = await fetchJson('api/verdicts');
    if (!found?.kernels) return;
    known = found;
    table.update(found.kernels);
    sums.replaceChildren(...totals(found.kernels));
    const left = found.known - found.kernels.length;
    say(remark, [left > 0 && `${left} kernels with less GPU time are left out.`, found.unread > 0 && `${found.unread} processes have no ledger that this daemon may read.`].filter(Boolean).join(' '));
    show();
  }

  show();
  load();
  const timer = setInterval(load, AGAIN);
  return { title: 'Verdicts', close: () => clearInterval(timer) };
}

const KINDS = {
  run: ['good', 'may run'], stop: ['plain', 'must wait'], turn: ['good', 'turn'], left: ['plain', 'stopped'], late: ['bad', 'late'], seat: ['plain', 'came'], lost: ['bad', 'alone'],
};

export function history(empty) {
  return new Table({
    caption: 'Decisions, the newest first', key: (line) => String(line.id), sort: null, empty,
    columns: [
      { name: 'time', title: 'since', text: (line) => words.clock(line.since_ms) },
      { name: 'last', title: 'last', wide: 1, text: (line) => words.clock(line.unix_ms) },
      { name: 'tenant', title: 'tenant', text: (line) => line.name },
      {
        name: 'what', title: 'what', cell: () => badge('', ''),
        show(element, line) {
          const [kind, word] = KINDS[line.kind];
          mark(element, 'class', `badge ${kind}`);
          say(element, word);
        },
      },
      { name: 'why', title: 'why', kind: 'prose', text: (line) => line.words },
      { name: 'count', title: 'times', kind: 'number', about: 'how often since then', text: (line) => words.count(line.count) },
      { name: 'longest', title: 'longest', kind: 'number', wide: 1, text: (line) => words.time(line.longest_ns) },
    ],
  });
}

export function decisions(main) {
  let held = null;
  const filter = filterBox('tenant, what, why …', () => update());
  const hold = h('button', { type: 'button', 'aria-pressed': 'false' }, 'Hold still');
  const table = history(() => (state.decisions.length ? 'No line matches the filter.' : 'Nothing was decided yet that is written down: a decision is made when a best-effort tenant has work and a latency tenant has some too, or turns are taken.'));
  main.append(h('h1', null, 'Decisions'), h('p', { class: 'lead' }, 'What was decided about tenants, and why; the last 200 lines. What goes on for one reason is one line, for up to a minute.'), h('section', null, h('div', { class: 'head' }, hold, filter.element), table.element));
  hold.addEventListener('click', () => {
    held = held ? null : [...state.decisions];
    mark(hold, 'aria-pressed', held ? 'true' : 'false');
    update();
  });

  function update() {
    const lines = (held ?? state.decisions).toReversed();
    const shown = lines.filter((line) => filter.matches(`${line.name} ${KINDS[line.kind][1]} ${line.words}`));
    filter.count(shown.length, lines.length);
    table.update(shown);
  }

  update();
  return { title: 'Decisions', close: listen(update) };
}
