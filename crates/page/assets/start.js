// The form of a start: the plan follows what is chosen, asked again when nothing has changed for a moment. And pages that look
// again by themselves.
"use strict";

(() => {
  const form = document.getElementById("start");
  if (!form) return;
  document.documentElement.classList.add("js");
  const plan = document.getElementById("plan"), memory = document.getElementById("memory"), slider = document.getElementById("memory-slider");
  const WAIT = 400;

  // The slider goes over sizes by their ratio: from the least that any training takes to all there is.
  const units = { "": 1, K: 1e3, M: 1e6, G: 1e9, T: 1e12, KI: 1024, MI: 1024 ** 2, GI: 1024 ** 3, TI: 1024 ** 4 };
  const least = +slider?.dataset.least, whole = Math.max(+slider?.dataset.whole, least * 1.01), usual = +slider?.dataset.usual;
  const bytesOf = (text) => {
    const share = /^\s*([\d.]+)\s*%\s*$/.exec(text), size = /^\s*([\d.]+)\s*([KMGT]?I?)B?\s*$/i.exec(text);
    if (share) return whole * share[1] / 100;
    return size ? size[1] * units[size[2].toUpperCase()] : null;
  };
  // Two digits are as much as a slider can mean.
  const sizeOf = (place) => {
    const bytes = least * (whole / least) ** (place / 1000), step = 10 ** Math.max(6, Math.floor(Math.log10(bytes)) - 1);
    const round = Math.min(Math.max(Math.round(bytes / step) * step, least), Math.floor(whole / 1e6) * 1e6);
    return round >= 1e9 ? `${+(round / 1e9).toFixed(2)}GB` : `${Math.round(round / 1e6)}MB`;
  };
  const placeOf = (bytes) => Math.round(1000 * Math.log(Math.min(Math.max(bytes, least), whole) / least) / Math.log(whole / least));
  function follow() {
    const bytes = memory.value.trim() ? bytesOf(memory.value) : usual;
    if (bytes) slider.value = placeOf(bytes);
    slider.setAttribute("aria-valuetext", memory.value || "as usual");
  }
  if (slider) {
    slider.disabled = false;
    follow();
    slider.addEventListener("input", () => { memory.value = sizeOf(+slider.value); slider.setAttribute("aria-valuetext", memory.value); });
    memory.addEventListener("input", follow);
  }

  const asked = () => {
    const fields = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...fields]) if (!value) fields.delete(name);
    return fields;
  };
  const needsTarget = () => form.querySelector("[name=target][required]") !== null;
  let asking = null, due = null, last = null;
  function soon() { clearTimeout(due); due = setTimeout(ask, WAIT); }
  async function ask() {
    const fields = asked();
    if (needsTarget() && !fields.get("target")) return;
    // The name changes nothing.
    const key = new URLSearchParams([...fields].filter(([name]) => name !== "name")).toString();
    if (key === last) return;
    last = key;
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    plan.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`/start/plan?${fields}`, { signal });
      const text = await answer.text();
      if (signal.aborted) return;
      if (!answer.ok) throw new Error(answer.statusText);
      const open = [...plan.querySelectorAll("details")].map((one) => one.open);
      plan.innerHTML = text;
      plan.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? false; });
      history.replaceState(null, "", `/start?${fields}&plan=1`);
    } catch (error) {
      if (error.name === "AbortError") return;
      plan.textContent = "The server does not answer.";
      last = null;
    }
    plan.removeAttribute("aria-busy");
  }
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button?.name === "plan") { event.preventDefault(); last = null; clearTimeout(due); ask(); return; }
    if (button?.name === "least") { event.preventDefault(); memory.value = button.value; if (slider) follow(); ask(); return; }
    asking?.abort();
    if (button) { button.textContent = "Starting …"; setTimeout(() => { button.disabled = true; }, 0); }
  });
  // Back from the run: the button can be pressed again.
  addEventListener("pageshow", () => {
    const button = form.querySelector("button.main");
    button.disabled = false;
    button.textContent = "Start";
  });
  if (!plan.querySelector(".verdict")) soon(); else last = new URLSearchParams([...asked()].filter(([name]) => name !== "name")).toString();
})();

(() => {
  const page = document.querySelector("[data-again]");
  if (!page) return;
  setInterval(() => { if (!document.hidden) refresh(); }, +page.dataset.again);
})();
