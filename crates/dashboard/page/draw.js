// Elements, made and kept up to date. Text only ever becomes text: names come from whoever starts a tenant.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Sets a text where it is another; whoever reads or selects it is not disturbed by the same. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  if (value == null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Shows these children, in this order, and moves only what is elsewhere. */
export function arrange(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, at) => {
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
  });
}

/** A line of the last values, for a cell. */
export function sparkline() {
  const line = s('path', { class: 'line' });
  const area = s('path', { class: 'area' });
  const element = s('svg', { class: 'spark', viewBox: '0 0 90 20', width: 90, height: 20, 'aria-hidden': 'true' }, area, line);
  return {
    element,
    update(values) {
      const known = values.map((value, at) => [at, value]).filter(([, value]) => value != null);
      const x = (at) => (90 * (at + 61 - values.length)) / 60 - 1.5;
      const y = (value) => 18.5 - 17 * Math.min(1, value / 1000);
      const path = known.map(([at, value], place) => `${place ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('');
      mark(line, 'd', path || null);
      const [first, last] = [known[0], known.at(-1)];
      mark(area, 'd', known.length > 1 ? `${path}L${x(last[0]).toFixed(1)} 19L${x(first[0]).toFixed(1)} 19Z` : null);
    },
  };
}

/** Calls back with the width of an element, now and whenever it changes. */
export function onWidth(element, callback) {
  const observer = new ResizeObserver(([entry]) => callback(entry.contentRect.width));
  observer.observe(element);
  return () => observer.disconnect();
}

export const badge = (kind, text) => h('span', { class: `badge ${kind}` }, text);

/** What is said where there is nothing to show. */
export const nothing = (...words) => h('p', { class: 'nothing' }, ...words);

export const code = (text) => h('code', null, text);
