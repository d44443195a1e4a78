// Numbers as people read them. Every number has its unit, and what is not known is a dash.

export const DASH = '–';

const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

/** A time that is known in nanoseconds. */
export function time(nanos) {
  if (nanos == null) return DASH;
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
    if (nanos >= size) return `${digits(nanos / size)} ${unit}`;
  }
  return `${nanos} ns`;
}

export function share(permille) {
  if (permille == null) return DASH;
  return permille > 0 && permille < 10 ? '<1 %' : `${Math.round(permille / 10)} %`;
}

export function bytes(count) {
  if (count == null) return DASH;
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (count >= size) return `${digits(count / size)} ${unit}`;
  }
  return `${count} B`;
}

const grouped = new Intl.NumberFormat('en', { useGrouping: true });

export function count(value) {
  return value == null ? DASH : grouped.format(value).replaceAll(',', ' ');
}

export function slowdown(permille) {
  return permille == null ? DASH : `${(permille / 1000).toFixed(2)}×`;
}

/** How many requests were seen alone of those that it takes to know. */
export function unknown(samples) {
  return samples ? `not known yet (${count(samples.seen)} of ${count(samples.needed)})` : 'not known yet';
}

export function clock(unix) {
  return new Date(unix).toLocaleTimeString('en-GB');
}

/** For how long something has been so. */
export function lasted(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0) return '0 s';
  const text = (at, value) => `${value} ${parts[at][1]}`;
  const whole = Math.floor(seconds / parts[first][0]);
  const rest = parts[first + 1] && Math.floor((seconds % parts[first][0]) / parts[first + 1][0]);
  return rest ? `${text(first, whole)} ${text(first + 1, rest)}` : text(first, whole);
}

/** A GPU by its number where it has one; the name that NVIDIA's tools have is long. */
export function gpu(card) {
  return card.index == null ? card.uuid.slice(0, 12) : `GPU ${card.index}`;
}

export const STATES = {
  holding: 'holds the token: its work may be on the GPU',
  running: 'has work on the GPU',
  waiting: 'waits for its turn',
  paused: 'stands still because somebody said so',
  idle: 'has nothing to do',
};

export const RUNGS = {
  none: 'cannot be stopped', hold: 'between kernels', guard: 'between blocks', switch: 'inside a block', confine: 'kept to fewer SMs',
};
