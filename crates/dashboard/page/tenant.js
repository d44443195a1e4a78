// All about one tenant on one GPU.

import { control } from './change.js';
import { curve } from './curve.js';
import { badge, code, h, mark, nothing, say, sparkline } from './draw.js';
import { history, kernelTable } from './lists.js';
import { memory, objective } from './overview.js';
import { fetchJson, key, latest, listen, look, shares, state } from './state.js';
import { Table } from './table.js';
import * as words from './words.js';

const AGAIN = 2000;

/** A figure with its words. */
function tile(title) {
  const [value, about] = [h('b', null, words.DASH), h('small', { class: 'soft' })];
  const element = h('div', { class: 'tile' }, h('span', null, title), value, about);
  return {
    element,
    show(text, more = '', kind = '') {
      say(value, text);
      say(about, more);
      mark(element, 'class', `tile ${kind}`);
    },
  };
}

const processTable = () => new Table({
  caption: 'Processes', key: (process) => String(process.pid), sort: null, empty: () => 'None is there now.',
  columns: [
    { name: 'pid', title: 'process', text: (process) => String(process.pid) },
    { name: 'program', title: 'program', cell: () => h('code'), show: (element, process) => say(element, process.program) },
    { name: 'state', title: 'state', text: (process) => process.state },
    { name: 'rung', title: 'stopped', text: (process) => words.RUNGS[process.rung] ?? process.rung },
    { name: 'why', title: 'why so', kind: 'prose', wide: 1, text: (process) => process.reason },
    { name: 'gpu', title: 'GPU time', kind: 'number', text: (process) => words.time(process.counters.gpu_ns) },
    { name: 'slice', title: 'slice', kind: 'number', wide: 2, text: (process) => (process.slice_ns == null ? 'default' : words.time(process.slice_ns)) },
  ],
});

/** Counters that say something of this class, in words. */
const COUNTERS = {
  latency: [['bursts', 'requests'], ['marked', 'of them marked by the program'], ['slo_missed', 'later than the objective'], ['launches', 'kernels launched'], ['submissions', 'pieces of work handed over']],
  'best-effort': [['launches', 'kernels launched'], ['submissions', 'pieces of work handed over'], ['preempted', 'times it made room for a latency tenant'], ['stops_hold', 'stops between kernels'], ['stops_guard', 'stops between blocks'], ['stops_switch', 'stops inside a block'], ['cut', 'launches cut by a stop'], ['relaunched', 'launches made again for the rest'], ['confined', 'of them beside requests, on some of the SMs'], ['waits', 'waits for a turn']],
};
const ALWAYS = [['memory_denials', 'allocations refused by its limit'], ['daemon_losses', 'times the daemon went away'], ['refusals', 'controls that the driver refused']];

export function tenant(main, [gpu, number]) {
  const find = () => state.rows.get(key({ gpu, tenant: number }));
  const title = h('h1');
  const kinds = h('p', { class: 'kinds' }, badge('', ''), h('span', { class: 'state' }), h('span', { class: 'soft' }));
  const change = control(find);
  const gone = nothing('This tenant has no process on the GPU any more. What it counted stays in the metrics for an hour.');
  const why = h('p', { class: 'lead' });
  const tiles = { gpu: tile('GPU time, last second'), slo: tile('Objective, p99'), slowdown: tile('Slowdown at p99'), stop: tile('Stop, p99'), wait: tile('Wait for a turn, p99'), rate: tile('Launches'), memory: tile('GPU memory') };
  const spark = sparkline();
  tiles.gpu.element.append(spark.element);
  const requests = h('section');
  const chart = curve();
  const processes = processTable();
  const counters = h('dl', { class: 'counters' });
  const notes = h('ul');
  const noted = h('section', null, h('h2', null, 'Notes'), notes);
  const kernels = kernelTable(false, () => (detail ? ['No kernel of it is known yet: ', detail.unread?.length ? 'its ledger cannot be read by this daemon.' : 'it has launched none.'] : 'Asking for its kernels …'));
  const past = history(() => 'Nothing was decided about it that is still remembered.');
  const body = h('div', null, why, h('div', { class: 'tiles' }, ...Object.values(tiles).map((one) => one.element)), requests,
    h('section', null, h('h2', null, 'Processes'), processes.element), h('section', null, h('h2', null, 'Counted so far'), counters), noted,
    h('section', null, h('h2', null, 'Kernels and verdicts'), kernels.element), h('section', null, h('h2', null, 'Decisions about it'), past.element));
  main.append(h('p', { class: 'back' }, h('a', { href: '#/' }, '← All tenants')), h('div', { class: 'head person' }, title, kinds, change.element), gone, body);
  let detail = null;

  function figures(row) {
    const point = latest()?.shares.get(key(row));
    const latency = row.class === 'latency';
    tiles.gpu.show(words.share(point?.share));
    spark.update(shares(row));
    mark(spark.element, 'class', `spark ${look(row)}`);
    const { kind, word, figures } = objective(row);
    tiles.slo.show(row.slo_ns == null ? 'none set' : word, row.slo_ns == null ? 'set one with --slo-p99' : figures, kind);
    tiles.slowdown.show(words.slowdown(row.slowdown_permille), row.slowdown_permille == null ? words.unknown(row.alone_samples) : 'over what requests take alone');
    tiles.stop.show(words.time(row.stop_p99_ns), row.stop_p99_ns == null ? 'it was not stopped yet' : `${row.rung}: ${words.RUNGS[row.rung] ?? ''}`);
    tiles.wait.show(words.time(row.wait_p99_ns), row.wait_p99_ns == null ? 'it never waited' : 'before it could hand over work');
    tiles.rate.show(point ? `${words.count(point.launches)} /s` : words.DASH, latency ? '' : point ? `makes room ${words.count(point.stops)} times /s` : '');
    tiles.memory.show(row.memory_used == null ? words.DASH : words.bytes(row.memory_used), row.memory_limit == null ? 'no limit is set' : `of ${words.bytes(row.memory_limit)}`);
    for (const name of ['slo', 'slowdown']) tiles[name].element.hidden = !latency;
    for (const name of ['stop', 'wait']) tiles[name].element.hidden = latency;
  }

  function update() {
    const row = find();
    gone.hidden = !state.ready || row != null;
    body.hidden = row == null;
    if (!row) return say(title, title.textContent || 'A tenant');
    say(title, row.name);
    mark(kinds.children[0], 'class', `badge ${row.class}`);
    say(kinds.children[0], row.class);
    say(kinds.children[1], row.state);
    mark(kinds.children[1], 'data-state', row.state);
    say(kinds.children[2], `${words.STATES[row.state]} · priority ${row.priority}, weight ${row.weight}`);
    change.update(row);
    say(why, row.decision ? `Last decided about it: ${row.decision}.` : '');
    why.hidden = !row.decision;
    figures(row);
    past.update(state.decisions.filter((line) => line.tenant === number).toReversed().slice(0, 25));
  }

  function showRequests(row) {
    if (row.class !== 'latency') return (requests.hidden = true);
    if (!requests.firstChild) requests.append(h('h2', null, 'Latency against alone and objective'));
    const alone = detail.processes.map((process) => process.requests?.alone).find((one) => one?.p99_ns);
    if (detail.bursts.length) {
      if (!chart.element.isConnected) (requests.querySelector('.nothing')?.remove(), requests.append(chart.element));
      chart.update(detail.bursts, alone, row.slo_ns, row.alone_samples);
    } else if (!requests.querySelector('.nothing')) {
      requests.append(nothing('No request of it was seen yet. One is a burst of work until the program waits for it; where that is not what a request is, mark it: ', code('with ebb.request():'), ' in Python.'));
    }
    return null;
  }

  function showDetail(row) {
    showRequests(row);
    processes.update(detail.processes);
    const sum = (name) => detail.processes.reduce((sum, process) => sum + process.counters[name], 0);
    const told = [...COUNTERS[row.class], ...ALWAYS.filter(([name]) => sum(name) > 0)];
    if (counters.children.length !== told.length) counters.replaceChildren(...told.map(([, title]) => h('div', null, h('dt', null, title), h('dd'))));
    told.forEach(([name], at) => say(counters.children[at].lastChild, words.count(sum(name))));
    const about = state.sentences.filter((sentence) => detail.processes.some((process) => sentence.includes(`(${process.pid})`)));
    const said = [...about, ...detail.notes];
    noted.hidden = said.length === 0;
    notes.replaceChildren(...said.map((sentence) => h('li', null, sentence)));
    kernels.update(detail.kernels);
    kernels.show(detail.kernels);
  }

  async function load() {
    const found = await fetchJson(`api/tenants/${gpu}/${number}`);
    const row = find();
    if (!found?.processes || !row) return;
    detail = found;
    showDetail(row);
  }

  const stop = listen(update);
  update();
  processes.update([]);
  kernels.show([]);
  load();
  const timer = setInterval(load, AGAIN);
  return {
    title: find()?.name ?? 'Tenant',
    back: true,
    close() {
      stop();
      chart.close();
      clearInterval(timer);
    },
  };
}
