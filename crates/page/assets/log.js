// A log that scrolls on at both ends, follows a live run, and is searched in pieces. Rows are made by the server; no more than
// a bounded number of them is on the page at a time.
"use strict";

(() => {
  const page = document.querySelector(".log[data-base]");
  if (!page) return;
  document.documentElement.classList.add("js");
  const MOST = 1500, PIECE = 250, NEAR = 1500;
  const base = page.dataset.base, box = document.getElementById("log");
  const follow = document.getElementById("follow"), wrap = document.getElementById("wrap");
  let list = document.getElementById("lines");
  let start, end, length, live, find = page.dataset.find || "", generation = 0;
  const busy = { up: false, down: false };

  // Rows.

  const rowsOf = async (parameters, signal) => {
    if (find) parameters.find = find;
    const answer = await fetch(`${base}/lines?${new URLSearchParams(parameters)}`, { signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    const rows = holder.content.querySelector("ol");
    clocks(rows);
    return rows;
  };

  const two = (number, digits = 2) => String(number).padStart(digits, "0");
  function clocks(root) {
    for (const cell of root.querySelectorAll("[data-ms]")) {
      const date = new Date(+cell.dataset.ms);
      cell.textContent = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
      cell.title = `${date.toLocaleDateString()} · ${date.toISOString()}`;
    }
  }

  function take(rows) {
    start = +rows.dataset.start; end = +rows.dataset.end; told(rows);
  }

  // What every answer tells, wherever its rows are.
  function told(rows) {
    length = +rows.dataset.length;
    const status = rows.dataset.status, badge = document.querySelector("#state .badge");
    live = status === "starting" || status === "running";
    if (badge && badge.textContent !== status) { badge.className = `badge ${status}`; badge.textContent = status; }
    if (!live && follow) { follow.checked = false; follow.disabled = true; }
  }

  const offsetOf = (row) => row?.id ? +row.id.slice(1) : null;
  const firstOf = (rows) => { for (const row of rows) if (row.id) return row; return null; };

  // The first row that can be seen.
  function top() {
    const edge = box.getBoundingClientRect().top + 1, rows = list.children;
    let low = 0, high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].getBoundingClientRect().bottom > edge) high = middle; else low = middle + 1;
    }
    return rows[low] || null;
  }

  // Changes rows without moving those that are seen.
  function steadily(change) {
    const anchor = top(), before = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected) box.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  async function extend(way) {
    const down = way === "down";
    if (busy[way] || (down ? end >= length && !live : start <= 0)) return 0;
    busy[way] = true;
    const mine = generation;
    try {
      const rows = await rowsOf({ [down ? "after" : "before"]: down ? end : start, limit: PIECE });
      if (mine !== generation) return 0;
      told(rows);
      const came = [...rows.children];
      if (!came.length) return 0;
      steadily(() => {
        if (down) { list.append(...came); end = +rows.dataset.end; } else { list.prepend(...came); start = +rows.dataset.start; }
        const over = list.children.length - MOST;
        if (over > 0) {
          const gone = [...list.children].slice(down ? 0 : -over, down ? over : undefined);
          if (!down) end = offsetOf(firstOf(gone)) ?? end;
          gone.forEach((row) => row.remove());
          if (down) start = offsetOf(firstOf(list.children)) ?? start;
        }
      });
      return came.length;
    } catch { return 0; } finally { busy[way] = false; }
  }

  // Somewhere else: all rows are others.
  let jumping = null;
  async function jump(parameters, place, address) {
    jumping?.abort();
    jumping = new AbortController();
    const mine = ++generation;
    try {
      const rows = await rowsOf({ ...parameters }, jumping.signal);
      if (mine !== generation) return null;
      if (parameters.at === "error" && !rows.children.length) { lookedForErrors(rows); return rows; }
      note(null);
      list.replaceWith(rows); list = rows; take(rows);
      settle(place);
      if (address) history.replaceState(null, "", address);
      return rows;
    } catch (error) { if (error.name !== "AbortError") note("The server does not answer."); return null; }
  }

  function settle(place) {
    const here = list.querySelector(".here");
    if (place === "end") box.scrollTop = box.scrollHeight;
    else if (here) box.scrollTop += here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
    else box.scrollTop = 0;
    where();
  }

  // Where this is.

  const size = (bytes) => {
    const units = ["B", "KB", "MB", "GB", "TB"];
    let at = 0;
    while (bytes >= 1000 && at < 4) { bytes /= 1000; at++; }
    return `${bytes >= 100 || at === 0 ? Math.round(bytes) : bytes.toPrecision(3).replace(/\.?0+$/, "")} ${units[at]}`;
  };
  function where() {
    const row = top(), at = offsetOf(row?.id ? row : row?.previousElementSibling) ?? start;
    const share = box.scrollTop + box.clientHeight >= box.scrollHeight - 2 && end >= length ? 1 : at / Math.max(length, 1);
    document.getElementById("where").textContent = `${size(at)} of ${size(length)}, ${Math.round(share * 100)}%`;
  }
  function note(text) {
    let line = page.querySelector(".note");
    if (!text) { line?.remove(); return; }
    if (!line) {
      line = document.createElement("p");
      line.className = "note";
      line.setAttribute("role", "status");
      page.querySelector(".ways").after(line);
    }
    line.textContent = text;
  }

  // Errors, which are looked for piece by piece.
  let lookingOn = null;
  function lookedForErrors(rows) {
    told(rows);
    const next = rows.dataset.next;
    if (!next) { note("Nothing looks like an error from there on."); return; }
    note(`Nothing looks like an error in the first ${size(+next)} of ${size(length)} …`);
    lookingOn = setTimeout(() => error(+next), 0);
  }
  function error(from) {
    clearTimeout(lookingOn);
    return jump({ at: "error", from }, "here", `${base}?at=error&from=${from}#here`);
  }
  function nextError() {
    const here = list.querySelector(".here") || top();
    error((offsetOf(here) ?? start - 1) + 1);
  }

  // Scrolling, and following what comes.

  let drawn = false;
  box.addEventListener("scroll", () => {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(() => {
      drawn = false;
      where();
      const below = box.scrollHeight - box.scrollTop - box.clientHeight;
      if (box.scrollTop < NEAR) extend("up");
      if (below < NEAR && end < length) extend("down");
      if (follow?.checked && below > 200 && !busy.down) follow.checked = false;
    });
  }, { passive: true });

  async function toEnd() { return jump({ at: "end" }, "end", `${base}?at=end#end`); }
  async function followOn() {
    if (follow?.checked && !document.hidden && live) {
      // A flood is not scrolled through line by line.
      if (length - end > 400_000) await toEnd();
      else while (follow.checked && await extend("down")) { box.scrollTop = box.scrollHeight; if (end >= length) break; }
      if (follow.checked) box.scrollTop = box.scrollHeight;
    }
    if (live) setTimeout(followOn, 800);
  }
  follow?.addEventListener("change", async () => { if (follow.checked) await toEnd(); });

  function wrapped(on) {
    steadily(() => box.classList.toggle("unwrapped", !on));
  }
  wrap.checked = localStorage.getItem("tidegate:wrap") !== "no";
  wrapped(wrap.checked);
  wrap.addEventListener("change", () => { localStorage.setItem("tidegate:wrap", wrap.checked ? "yes" : "no"); wrapped(wrap.checked); });

  // Ways to other places.

  const jumps = {
    start: () => jump({ at: "start" }, "start", `${base}?at=start`),
    end: toEnd,
    earlier: () => { box.scrollTop -= box.clientHeight * 0.9; },
    later: () => { box.scrollTop += box.clientHeight * 0.9; },
    error: () => error(0),
    "next-error": nextError,
    death: () => jump({ at: "death" }, "here", `${base}?at=death#here`),
  };
  page.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const way = event.target.closest("[data-jump]"), hit = event.target.closest("#hit-list a"), line = event.target.closest("#lines a.when");
    if (way && jumps[way.dataset.jump]) { event.preventDefault(); if (follow) follow.checked = false; jumps[way.dataset.jump](); }
    else if (hit) { event.preventDefault(); show(hit); }
    else if (line) {
      event.preventDefault();
      list.querySelector(".here")?.classList.remove("here");
      line.closest("li").classList.add("here");
      history.replaceState(null, "", line.getAttribute("href"));
    }
  });

  // Searching.

  const form = document.getElementById("search"), input = document.getElementById("find");
  const panel = document.getElementById("hits"), found = document.getElementById("found"), cancel = document.getElementById("cancel");
  const MOST_HITS = 2000;
  let searching = null, current = null, next = null;
  const hitList = () => document.getElementById("hit-list");

  async function search(text, from = 0) {
    searching?.abort();
    searching = new AbortController();
    const { signal } = searching;
    find = text;
    if (from === 0) { hitList().replaceChildren(); current = null; }
    document.getElementById("more")?.remove();
    panel.hidden = !text;
    if (!text) { await jump({ offset: offsetOf(top()) ?? start }, "here"); return; }
    cancel.hidden = false;
    next = from;
    try {
      while (next !== null && hitList().children.length < MOST_HITS) {
        const answer = await fetch(`${base}/hits?${new URLSearchParams({ find: text, from: next })}`, { signal });
        if (!answer.ok) throw new Error(answer.statusText);
        const holder = document.createElement("template");
        holder.innerHTML = await answer.text();
        const came = holder.content.querySelector("ol");
        clocks(came);
        length = +came.dataset.length;
        next = came.dataset.next ? +came.dataset.next : null;
        hitList().append(...came.children);
        say(+came.dataset.searched, next !== null);
        if (!current && hitList().firstElementChild) show(hitList().querySelector("a"));
      }
      say(null, false);
    } catch (error) { if (error.name !== "AbortError") found.textContent = "The search was cut off."; }
    if (signal === searching.signal) cancel.hidden = true;
  }
  function say(to, goesOn) {
    const n = hitList().children.length, lines = `${n.toLocaleString()} ${n === 1 ? "line" : "lines"}`;
    found.textContent = goesOn ? `${lines} in ${size(to)} of ${size(length)} …` : next !== null ? `${lines} so far` : n ? lines : "Not in this log";
    if (!goesOn && next !== null && !document.getElementById("more")) {
      const more = document.createElement("p"), button = document.createElement("button");
      more.id = "more"; button.type = "button"; button.textContent = "Look on"; more.append(button);
      button.addEventListener("click", () => { hitList().replaceChildren(); search(find, next); });
      panel.append(more);
    }
  }
  async function show(hit) {
    current?.removeAttribute("aria-current");
    current = hit;
    hit.setAttribute("aria-current", "true");
    hit.scrollIntoView({ block: "nearest" });
    if (follow) follow.checked = false;
    const offset = +hit.dataset.offset, there = document.getElementById(`o${offset}`);
    const marked = there?.querySelector("mark");
    if (marked) {
      list.querySelector(".here")?.classList.remove("here");
      there.classList.add("here");
      settle("here");
    } else if (!await jump({ offset }, "here")) return;
    list.querySelector(".now")?.classList.remove("now");
    document.getElementById(`o${offset}`)?.classList.add("now");
    history.replaceState(null, "", `${base}?${new URLSearchParams({ find, offset })}#here`);
  }
  function step(by) {
    const hits = [...hitList().querySelectorAll("a")];
    if (!hits.length) return;
    const at = hits.indexOf(current);
    show(hits[(at + by + hits.length) % hits.length]);
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value;
    if (text && text === find && hitList().children.length) step(1); else search(text);
  });
  input.addEventListener("search", () => { if (!input.value && find) search(""); });
  cancel.addEventListener("click", () => { searching?.abort(); say(null, false); cancel.hidden = true; });
  document.getElementById("next").addEventListener("click", () => step(1));
  document.getElementById("previous").addEventListener("click", () => step(-1));

  // Keys, as in a pager.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      // The browser would empty the field, and with it the hits.
      event.preventDefault();
      if (!cancel.hidden) cancel.click();
      if (document.activeElement === input) box.focus({ preventScroll: true });
      return;
    }
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const keys = { n: () => step(1), p: () => step(-1), N: () => step(-1), g: jumps.start, G: toEnd, e: nextError, "/": () => { input.focus(); input.select(); } };
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  // As the page came.
  page.querySelector(".zone").textContent = "";
  take(list);
  clocks(page);
  settle(location.hash === "#end" ? "end" : "here");
  if (find) current = hitList().querySelector(`a[data-offset="${offsetOf(list.querySelector(".here"))}"]`);
  current?.setAttribute("aria-current", "true");
  // What was found on the server is the beginning.
  const more = document.getElementById("hit-list").dataset.next;
  if (find && (panel.hidden || more)) search(find, more ? +more : 0);
  // The address names a row in the box; the page itself stays where it is, whatever the browser makes of it.
  const stay = () => { scrollTo(0, 0); settle(location.hash === "#end" ? "end" : "here"); };
  stay();
  if (document.readyState !== "complete") addEventListener("load", () => requestAnimationFrame(stay));
  if (live) {
    follow.checked = location.hash === "#end";
    followOn();
  }
})();
