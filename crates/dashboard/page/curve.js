// How long requests take: for each time, the part of them that was no slower. The scale is one of nines, since the slowest of
// a hundred is what an objective is about; on a plain one it would be a hair's breadth.

import { h, mark, onWidth, s } from './draw.js';
import { count, time, unknown } from './words.js';

const HEIGHT = 300;
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 18, 26, 42];
const NINES = [[0, '0 %'], [0.5, '50 %'], [0.9, '90 %'], [0.99, '99 %'], [0.999, '99.9 %'], [0.9999, '99.99 %']];

const height = (part) => -Math.log10(1 - part);

/** Points of the curve: a time, and the part that was no slower. */
export function cumulate(buckets) {
  const whole = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  return buckets.map(([end, count]) => [end, (seen += count) / whole]);
}

/** The time that this part of the requests do not exceed. */
export function quantile(points, part) {
  return points.find(([, reached]) => reached >= part - 1e-12)?.[0];
}

function steps(from, to) {
  const found = [];
  for (let decade = 10 ** Math.floor(Math.log10(from)); decade <= to; decade *= 10) {
    for (const step of [1, 2, 5]) if (decade * step >= from && decade * step <= to) found.push(decade * step);
  }
  return found;
}

export function curve() {
  const svg = s('svg', { class: 'curve', height: HEIGHT, role: 'img' });
  const legend = h('ul', { class: 'legend' });
  const element = h('figure', null, h('figcaption', null, h('span', null, 'Requests no slower than')), svg, legend);
  let width = 0;
  let told = null;
  const release = onWidth(element, (wide) => {
    width = Math.max(220, Math.floor(wide));
    mark(svg, 'width', width);
    if (told) draw();
  });

  function scales(points, alone, slo) {
    const known = [...points.map(([end]) => end), alone?.p50_ns, alone?.p99_ns, slo].filter((value) => value > 0);
    const [from, to] = [Math.min(...known) / 1.25, Math.max(...known) * 1.25];
    const whole = told.count;
    const most = Math.max(height(0.99), height(1 - 1 / Math.max(2, whole)));
    const x = (nanos) => LEFT + ((Math.log(nanos) - Math.log(from)) / (Math.log(to) - Math.log(from))) * (width - LEFT - RIGHT);
    const y = (part) => TOP + (1 - Math.min(1, height(Math.min(part, 1 - 1e-9)) / (most * 1.04))) * (HEIGHT - TOP - BOTTOM);
    return { from, to, x, y, most };
  }

  function grid({ from, to, x, y, most }) {
    const across = NINES.filter(([part]) => height(part) <= most * 1.04).flatMap(([part, label]) => [
      s('line', { x1: LEFT, x2: width - RIGHT, y1: y(part), y2: y(part) }),
      s('text', { x: LEFT - 8, y: y(part) + 4, class: 'end' }, label),
    ]);
    let last = -Infinity;
    const up = steps(from, to).flatMap((nanos) => {
      const place = x(nanos);
      // Labels that would touch are left out.
      if (place - last < 58) return [];
      last = place;
      return [s('line', { x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM }), s('text', { x: place, y: HEIGHT - BOTTOM + 16, class: 'mid' }, time(nanos).replace(/\.0+ /, ' '))];
    });
    return s('g', { class: 'axis' }, ...across, ...up, s('text', { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, class: 'mid' }, 'time of a request'));
  }

  function upright(nanos, name, kind, { x }) {
    const place = x(nanos);
    const side = place > width - 150 ? 'end' : 'start';
    return s('g', { class: kind }, s('line', { x1: place, x2: place, y1: TOP - 6, y2: HEIGHT - BOTTOM }), s('text', { x: place + (side === 'end' ? 3 : -3), y: TOP - 10, class: side }, name));
  }

  function draw() {
    const { points, alone, slo } = told;
    const scale = scales(points, alone, slo);
    const { x, y } = scale;
    const parts = [grid(scale)];
    if (slo) {
      const over = Math.max(LEFT, x(slo));
      parts.push(s('rect', { class: 'over', x: over, y: TOP, width: Math.max(0, width - RIGHT - over), height: HEIGHT - TOP - BOTTOM }));
    }
    let path = `M${x(scale.from).toFixed(1)} ${y(0).toFixed(1)}`;
    let before = 0;
    for (const [end, part] of points) {
      path += `L${x(end).toFixed(1)} ${y(before).toFixed(1)}L${x(end).toFixed(1)} ${y(part).toFixed(1)}`;
      before = part;
    }
    parts.push(s('path', { class: 'now', d: path }));
    if (alone) {
      const [half, tail] = [[x(alone.p50_ns), y(0.5)], [x(alone.p99_ns), y(0.99)]];
      parts.push(s('g', { class: 'alone' }, s('path', { d: `M${half}L${tail}` }), ...[half, tail].map(([cx, cy]) => s('circle', { cx, cy, r: 4.5 }))));
    }
    const p99 = quantile(points, 0.99);
    parts.push(s('circle', { class: 'tail', cx: x(p99), cy: y(0.99), r: 4.5 }));
    if (slo) parts.push(upright(slo, `objective ${time(slo)}`, 'slo', scale));
    svg.replaceChildren(...parts);
  }

  return {
    element,
    close: release,
    /** `buckets`: up to which time, how many; `alone`: what is known of requests that had the GPU to themselves. */
    update(buckets, alone, slo, samples) {
      const points = cumulate(buckets);
      const whole = buckets.reduce((sum, [, count]) => sum + count, 0);
      told = { points, alone: alone?.p99_ns ? alone : null, slo, count: whole };
      const p = (part) => time(quantile(points, part));
      const items = [h('li', { class: 'now' }, h('span', { class: 'stroke' }), h('span', null, `as it is, ${count(whole)} requests: p50 ${p(0.5)}, p99 ${p(0.99)}`))];
      items.push(h('li', { class: 'alone' }, h('span', { class: 'stroke' }), h('span', null, told.alone
        ? `alone on the GPU, ${count(alone.count)} requests: p50 ${time(alone.p50_ns)}, p99 ${time(alone.p99_ns)}`
        : `alone on the GPU: ${unknown(samples)}; requests are let run alone to see`)));
      if (slo) items.push(h('li', { class: 'slo' }, h('span', { class: 'stroke' }), h('span', null, `objective: 99 of 100 within ${time(slo)}`)));
      legend.replaceChildren(...items);
      mark(svg, 'aria-label', items.map((item) => item.textContent).join('; '));
      if (width) draw();
    },
  };
}
