// What is known, and how it comes: one stream of events, everything first and then what has changed.

/** What is older than this is said to be old. */
const STALE = 5000;
const RETRY = 2000;
/** The timeline goes back so far. */
export const SPAN = 60_000;
const LINES = 200;

export const key = (one) => `${one.gpu}/${one.tenant}`;

export const state = {
  ready: false,
  about: null,
  admin: false,
  gpus: [],
  rows: new Map(),
  moments: [],
  decisions: [],
  sentences: [],
  /** When something was last heard, by this browser's clock. */
  heard: 0,
  events: 0,
  lost: false,
};

const listeners = new Set();

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = () => listeners.forEach((listener) => listener());

function index(moment) {
  moment.shares = new Map(moment.points.map((point) => [key(point), point]));
  return moment;
}

function all(document) {
  Object.assign(state, {
    ready: true,
    about: document.about,
    admin: document.admin,
    gpus: document.gpus,
    rows: new Map(document.rows.map((row) => [key(row), row])),
    moments: document.moments.map(index),
    decisions: document.decisions,
    sentences: document.sentences,
  });
}

function news(document) {
  if (document.gpus) state.gpus = document.gpus;
  if (document.sentences) state.sentences = document.sentences;
  for (const row of document.rows) state.rows.set(key(row), row);
  for (const [gpu, tenant] of document.gone) state.rows.delete(key({ gpu, tenant }));
  state.moments.push(index(document.moment));
  const oldest = document.moment.unix_ms - SPAN - 1500;
  state.moments = state.moments.filter((moment) => moment.unix_ms >= oldest);
  const grown = new Map(document.grown.map(([id, unix_ms, count, longest_ns]) => [id, { unix_ms, count, longest_ns }]));
  const kept = state.decisions.map((line) => (grown.has(line.id) ? { ...line, ...grown.get(line.id) } : line));
  state.decisions = kept.concat(document.decisions).slice(-LINES);
}

function take(how) {
  return (event) => {
    how(JSON.parse(event.data));
    state.heard = Date.now();
    state.events += 1;
    state.lost = false;
    tell();
  };
}

export function connect() {
  const source = new EventSource('api/stream');
  source.addEventListener('all', take(all));
  source.addEventListener('news', take(news));
  source.addEventListener('error', () => {
    state.lost = true;
    tell();
    // It tries again by itself, unless it was refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY);
  });
}

/** Whether what is shown may no longer be so. */
export const stale = () => state.ready && (state.lost || Date.now() - state.heard > STALE);

export const latest = () => state.moments.at(-1);

/** More tenants of a class on a GPU than this have no colours of their own. */
const COLOURS = { latency: ['l', 4], 'best-effort': ['b', 6] };
const looks = new Map();

/** The colour of a tenant, the same wherever it is shown and for as long as it is. */
export function look(row) {
  const own = looks.get(key(row));
  if (own?.class === row.class) return own.look;
  const [letter, most] = COLOURS[row.class];
  const others = [...looks].filter(([other, { gpu }]) => gpu === row.gpu && (state.rows.has(other) || state.moments.some((moment) => moment.shares.has(other))));
  const taken = new Set(others.map(([, { look }]) => look));
  let at = 0;
  while (at < most && taken.has(letter + at)) at += 1;
  const found = at < most ? letter + at : `${letter}x`;
  looks.set(key(row), { class: row.class, gpu: row.gpu, look: found });
  return found;
}

/** The shares of a tenant along time; null where it was not there. */
export const shares = (row) => state.moments.map((moment) => moment.shares.get(key(row))?.share ?? null);

/** What only one page shows. Nothing where the daemon does not answer: the next time is soon. */
export async function fetchJson(path) {
  try {
    const response = await fetch(path);
    return response.ok ? await response.json() : { missing: response.status === 404 };
  } catch {
    return null;
  }
}
