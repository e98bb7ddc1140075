// What every page does with scripts: the reader's own clock, sections that follow a live run, buttons that copy.
"use strict";

// <time> says UTC; a reader wants the own clock.
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (isNaN(date)) continue;
    const today = date.toDateString() === new Date().toDateString();
    const options = today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" };
    time.textContent = date.toLocaleString(undefined, options);
    time.title = time.dateTime;
  }
}

// A page that is open asks for itself again when something has moved, and takes over the parts that may change:
// elements with an id and `data-live`. What a person has chosen or types in stays.
let asking = false, askAgain = false;
async function refresh() {
  if (asking) { askAgain = true; return; }
  asking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.ok) takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* The server is gone; the next event tells whether it is back. */ }
  asking = false;
  if (askAgain) { askAgain = false; setTimeout(refresh, 500); }
}

// As the server wrote them, for what scripts have done to them since is no change.
const written = new Map();
function remember(page) {
  for (const part of page.querySelectorAll("[data-live][id]")) written.set(part.id, part.innerHTML);
}

// What tells a control from the others.
const nameOf = (one) => one.id || one.getAttribute("href") || [one.tagName, one.getAttribute("name"), one.getAttribute("value"), one.getAttribute("aria-label") ?? one.textContent].join();

function takeOver(page) {
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const now = page.getElementById(old.id), text = now?.innerHTML;
    if (!now || written.get(old.id) === text) continue;
    const checked = new Set([...old.querySelectorAll("input:checked")].map((input) => input.value));
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    const focused = old.contains(document.activeElement) && document.activeElement !== old ? nameOf(document.activeElement) : null;
    old.innerHTML = text;
    old.className = now.className;
    written.set(old.id, text);
    for (const input of old.querySelectorAll("input[type=checkbox]")) input.checked = checked.has(input.value);
    old.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
    if (focused) [...old.querySelectorAll("a, button, input, select, summary, [tabindex]")].find((one) => nameOf(one) === focused)?.focus();
    localTimes(old);
    document.dispatchEvent(new CustomEvent("tidegate:moved", { detail: old }));
  }
}

// `<main data-events="/api/events">`: where this page hears of what moves, as long as it is seen: a browser keeps few
// connections to one server, and a page that nobody sees holds none.
function listen() {
  const source = document.querySelector("[data-events]")?.dataset.events;
  if (!source || !window.EventSource) return;
  let events = null, over = false;
  const hear = () => { if (!events && !over) events = follow(source, () => { over = true; }); };
  const leave = () => { events?.close(); events = null; };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return leave();
    if (!over) refresh();
    hear();
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", hear);
  if (!document.hidden) hear();
}

function follow(source, whenOver) {
  const events = new EventSource(source);
  let due = null;
  const soon = () => { due ??= setTimeout(() => { due = null; refresh(); }, 400); };
  events.addEventListener("run", soon);
  events.addEventListener("metric", soon);
  events.addEventListener("memory", (event) => document.dispatchEvent(new CustomEvent("tidegate:memory", { detail: JSON.parse(event.data) })));
  events.addEventListener("sentence", (event) => {
    const { id, text } = JSON.parse(event.data);
    for (const place of document.querySelectorAll(`[data-sentence="${CSS.escape(id)}"]`)) place.textContent = text;
  });
  events.addEventListener("over", () => { events.close(); whenOver(); soon(); });
  return events;
}

// `<button data-copy="text">`, or the text of the element that `data-copy-from` names.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const text = button.dataset.copy ?? document.getElementById(button.dataset.copyFrom)?.textContent ?? "";
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text.trim());
    button.textContent = "Copied";
  } catch { button.textContent = "Not copied"; }
  setTimeout(() => { button.textContent = said; }, 1500);
});

remember(document);
localTimes(document);
listen();
