// Which page is shown, keys, theme, and whether what is shown is still so.

import { h, mark, say } from './draw.js';
import { decisions, verdicts } from './lists.js';
import { overview } from './overview.js';
import { connect, listen, stale, state } from './state.js';
import { tenant } from './tenant.js';
import { clock, lasted } from './words.js';

const main = document.getElementById('main');
const PAGES = { '': ['overview', overview], verdicts: ['verdicts', verdicts], decisions: ['decisions', decisions], tenant: ['overview', tenant] };
let shown = null;

function route() {
  const [name = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  const [page, open] = PAGES[name] ?? PAGES[''];
  const first = shown == null;
  shown?.close();
  main.replaceChildren();
  shown = open(main, rest);
  document.title = `${shown.title} · ebb`;
  for (const link of document.querySelectorAll('nav a')) mark(link, 'aria-current', link.dataset.page === page ? 'page' : null);
  // Who comes by keyboard goes on from the new page's beginning.
  if (!first) (main.focus({ preventScroll: true }), scrollTo(0, 0));
}

/* Theme: as the system is, unless somebody says otherwise. */
const THEMES = ['system', 'dark', 'light'];
const button = document.getElementById('theme');

function theme(next) {
  const name = THEMES.includes(next) ? next : 'system';
  mark(document.documentElement, 'data-theme', name === 'system' ? null : name);
  say(button, { system: 'Theme: system', dark: 'Theme: dark', light: 'Theme: light' }[name]);
  try {
    localStorage.setItem('ebb-theme', name);
  } catch {
    // A browser that keeps nothing forgets it.
  }
}

function remembered() {
  try {
    return localStorage.getItem('ebb-theme');
  } catch {
    return null;
  }
}

const nextTheme = () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? 'system') + 1) % THEMES.length]);
button.addEventListener('click', nextTheme);

/* Keys. */
const help = document.getElementById('help');
document.getElementById('keys').addEventListener('click', () => help.showModal());
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});

const KEYS = {
  '/': () => document.getElementById('filter')?.focus(),
  '?': () => help.showModal(),
  t: nextTheme,
  1: () => (location.hash = '#/'),
  2: () => (location.hash = '#/verdicts'),
  3: () => (location.hash = '#/decisions'),
  ArrowDown: () => document.activeElement.matches('body, main, #filter') && shown.enter?.(),
  Escape: () => shown.back && (location.hash = '#/'),
};

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const typing = event.target.matches('input');
  if (typing && event.key !== 'ArrowDown') return;
  const act = KEYS[event.key];
  if (!act) return;
  if (['/', '?', 'ArrowDown'].includes(event.key)) event.preventDefault();
  act();
});

/* Whether all is well with the connection. */
const [banner, live, about] = ['banner', 'live', 'about'].map((id) => document.getElementById(id));

function condition() {
  const old = stale();
  document.body.classList.toggle('stale', old);
  say(live, !state.ready ? (state.lost ? 'no connection' : 'connecting') : old ? 'stale' : 'live');
  mark(live, 'data-state', state.ready && !old ? 'live' : 'stale');
  banner.hidden = !(old || (state.lost && !state.ready));
  if (!banner.hidden) {
    say(banner, state.ready ? `No connection to the daemon. What is shown is from ${clock(state.heard)} and may no longer be so; the page connects again by itself.` : 'No connection to the daemon; the page connects by itself when there is one.');
  }
  if (state.about) {
    const { version, pid, scope, domain, began_unix_ms: began } = state.about;
    const change = state.admin ? 'changes with the admin token' : 'read-only';
    say(about, `ebb ${version} · daemon ${pid} for the ${scope}, ${domain} domain, up ${lasted(Date.now() - began)} · ${change}`);
  }
}

theme(remembered());
main.replaceChildren(h('p', { class: 'nothing' }, 'Waiting for the daemon …'));
addEventListener('hashchange', route);
listen(condition);
setInterval(condition, 1000);
const begin = listen(() => {
  if (!state.ready) return;
  begin();
  route();
});
connect();
condition();
