// What the page can do beyond being read. Without any of it the page is complete.
"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

  // Sorting: a column's header becomes a button. A cell may say in data-v by what it is sorted; "overload" is more than
  // any number, and what has no value comes last either way.
  const value = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return null;
    const said = cell.dataset.v;
    if (said === undefined || said === "") return cell.dataset.v === "" ? null : cell.textContent.trim();
    return Number(said);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const sort = (table, header, column) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    Array.from(body.rows)
      .map((row) => [value(row, column), row])
      .sort(([a], [b]) => (a === null ? 1 : b === null ? -1 : down ? compare(b, a) : compare(a, b)))
      .forEach(([, row]) => body.append(row));
  };
  for (const table of all("table.sortable")) {
    const headers = Array.from(table.tHead.rows[table.tHead.rows.length - 1].cells);
    headers.forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header, column));
    });
  }

  // Tips at once and where the pointer is, instead of the browser's after a second. The title leaves its element while
  // the tip shows, so that there are not two.
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.hidden = true;
  let shown = null;
  const hide = () => {
    if (!shown) return;
    shown.holder.append(shown.title);
    shown = null;
    tip.hidden = true;
  };
  document.addEventListener("pointerover", (event) => {
    hide();
    const holder = event.target.closest && event.target.closest("svg g, svg rect");
    const title = holder && Array.from(holder.children).find((child) => child.tagName === "title");
    if (!title) return;
    title.remove();
    shown = { holder, title };
    tip.textContent = title.textContent;
    tip.hidden = false;
  });
  document.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    const room = { x: innerWidth - tip.offsetWidth - 8, y: innerHeight - tip.offsetHeight - 8 };
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, room.x)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, room.y)) + "px";
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());

  // Details: all of a section at once; the one a link leads to; every one on paper.
  for (const section of all("section")) {
    const folds = all("details", section);
    const place = section.querySelector(".folds");
    if (folds.length < 2 || !place) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    const name = () => (button.textContent = folds.every((fold) => fold.open) ? "Close all" : "Open all");
    button.addEventListener("click", () => {
      const open = !folds.every((fold) => fold.open);
      folds.forEach((fold) => (fold.open = open));
      name();
    });
    folds.forEach((fold) => fold.addEventListener("toggle", name));
    name();
    place.append(button);
  }
  const arrive = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = target && target.closest("details");
    if (fold) fold.open = true;
    if (fold) target.scrollIntoView();
  };
  addEventListener("hashchange", arrive);
  arrive();
  addEventListener("beforeprint", () => all("details").forEach((fold) => (fold.open = true)));

  document.documentElement.dataset.ready = "yes";
})();
