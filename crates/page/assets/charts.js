// Curves that can be pointed at: uPlot takes the place of what the server has drawn, in the same box and the same colours.
// Values are read in the keys below, dragging looks closer, and a click on a moment leads to the log.
"use strict";
(() => {
  const POINTS = 1200, MOST = 4000, SIDE = 60, BOTTOM = 24;
  const charts = new Map();

  // ---- Words, as the server writes them.
  const UNITS = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
  function bytes(value) {
    if (value == null) return "–";
    let unit = 0;
    while (value >= 999.5 && unit + 1 < UNITS.length) { value /= 1000; unit++; }
    const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return `${+value.toFixed(digits)} ${UNITS[unit]}`;
  }
  function moment(ms) {
    const seconds = ms / 1e3, whole = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
    if (seconds > 0 && seconds < 10 && ms % 1000) return `${seconds.toFixed(1)} s`;
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
    if (whole < 172800) return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
    return `${Math.floor(whole / 86400)} d ${Math.floor(whole / 3600) % 24} h`;
  }
  function figure(value) {
    if (value == null) return "–";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(3) : String(+value.toPrecision(4));
  }
  // Beside a chart there is no room for digits that say nothing.
  function brief(value) {
    const size = Math.abs(value), cut = +value.toPrecision(4);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? cut.toExponential().replace("e+", "e") : String(cut);
  }
  const short = (n) => n == null ? "–" : n >= 1e6 ? `${+(n / 1e6).toFixed(2)} M` : n >= 1e4 ? `${Math.round(n / 1e3)} k` : String(+n.toFixed(1));
  const percent = (value) => value == null ? "–" : `${+(value * 100).toPrecision(4)}%`;
  function wordOf(name) {
    if (name === "stall") return percent;
    if (/^(rows_per_second|samples_per_second|throughput)$/.test(name)) return (value) => value == null ? "–" : `${short(value)} rows/s`;
    return figure;
  }

  // ---- Colours are those of the sheet, whichever it is just now.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function mixed(front, back, share) {
    const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const [a, b] = [parts(front), parts(back)];
    return `rgb(${a.map((value, i) => Math.round(value * share + b[i] * (1 - share))).join()})`;
  }

  const answers = new Map();
  // Several charts are made of one answer.
  function ask(address, fresh) {
    if (fresh || !answers.has(address)) {
      answers.set(address, fetch(address, { headers: { accept: "application/json" } }).then((answer) => {
        if (!answer.ok) throw new Error(answer.statusText);
        return answer.json();
      }));
      answers.get(address).catch(() => answers.delete(address));
    }
    return answers.get(address);
  }

  // ---- What each kind of chart is made of: { x, xWord, yWord, lines: [{ name, raw, drawn, stroke, fill, dash, hidden }], marks }.
  function stacked(graph) {
    const below = new Array(graph.time_ms.length).fill(0), card = colour("--card");
    let number = 0;
    const lines = graph.series.map(({ name, role, values }) => {
      const line = { name, raw: values, drawn: values, role };
      if (role === "part") {
        const own = colour(`--c${number++ % 8 + 1}`);
        line.drawn = values.map((value, i) => value == null ? null : below[i] += value);
        Object.assign(line, { stroke: own, fill: mixed(own, card, .45), width: .5 });
      } else if (role === "total") line.stroke = colour("--ink");
      else if (role === "limit") Object.assign(line, { stroke: colour("--line"), dash: [6, 4], stepped: true });
      else Object.assign(line, { stroke: colour("--muted"), dash: [2, 3], hidden: true });
      return line;
    });
    // The highest of a stack first: those below are drawn over it.
    const parts = lines.filter((line) => line.role === "part").reverse();
    return [...parts, ...lines.filter((line) => line.role !== "part")];
  }
  function ofMemory(graph) {
    const lines = stacked(graph);
    const most = (role) => Math.max(0, ...lines.filter((line) => (line.role === "limit") === role).map((line) => largest(line.drawn)));
    const used = most(false), limit = most(true);
    return {
      x: graph.time_ms, lines, marks: graph.marks, xWord: moment, yWord: bytes, fromZero: true,
      // A line far above all that was used would press the rest to the ground.
      top: limit <= 8 * used ? Math.max(used, limit) : used,
    };
  }
  const largest = (values) => values.reduce((most, value) => value > most ? value : most, 0);

  // Curves of different places onto one axis.
  function joined(curves, place) {
    const xs = [...new Set(curves.flatMap((curve) => curve.points.map(place)))].sort((a, b) => a - b);
    const at = new Map(xs.map((x, i) => [x, i]));
    const values = curves.map((curve) => {
      const column = new Array(xs.length).fill(undefined);
      for (const point of curve.points) column[at.get(place(point))] = point.value;
      return column;
    });
    return { xs, values };
  }
  function ofCurves(curves, unit) {
    const place = (point) => unit === "step" ? point.step : point.epoch;
    // A curve that begins again, fold by fold, stays as the server drew it.
    const rises = (curve) => curve.points.every((point, i) => i === 0 || place(point) > place(curve.points[i - 1]));
    if (!curves.length || !curves.every(rises)) return null;
    const { xs, values } = joined(curves, place);
    const word = wordOf(curves[0].metric ?? curves[0].name);
    const lines = curves.map((curve, i) => ({
      name: curve.name, raw: values[i], drawn: values[i], stroke: colour(`--c${curve.colour}`), spanGaps: true, points: xs.length < 40,
    }));
    const tick = word === figure ? brief : word === percent ? percent : short;
    return { x: xs, lines, marks: [], xWord: short, yWord: word, yTick: tick, xTitle: unit };
  }
  const KINDS = {
    memory: (chart, told) => ofMemory(told),
    metrics(chart, told) {
      const curves = chart.names.map((name, i) => ({ ...told.curves.find((curve) => curve.name === name), colour: i % 8 + 1 }));
      return ofCurves(curves.filter((curve) => curve.points?.length), chart.box.dataset.unit);
    },
    "compare-memory"(chart, told) {
      const curves = told.memory.map(({ run, time_ms, bytes }, i) => ({ name: run, colour: i % 8 + 1, points: time_ms.map((x, j) => ({ x, value: bytes[j] })) }));
      const { xs, values } = joined(curves.filter((curve) => curve.points.length), (point) => point.x);
      const lines = curves.filter((curve) => curve.points.length).map((curve, i) => ({ name: curve.name, raw: values[i], drawn: values[i], stroke: colour(`--c${curve.colour}`), spanGaps: true }));
      return { x: xs, lines, marks: [], xWord: moment, yWord: bytes, fromZero: true };
    },
    "compare-metric"(chart, told) {
      const found = told.metrics.find((metric) => metric.name === chart.box.dataset.name);
      const place = (run) => told.runs.findIndex((known) => known.id === run) % 8 + 1;
      return ofCurves((found?.curves ?? []).map((curve) => ({ ...curve, metric: curve.name, name: curve.run, colour: place(curve.run) })), chart.box.dataset.unit);
    },
  };

  // ---- One chart.
  function chartOf(box) {
    const names = box.dataset.names ? JSON.parse(box.dataset.names) : [];
    return { box, plot: box.querySelector(".plot"), kind: box.dataset.chart, names, hidden: new Set(), seen: false, zoom: null };
  }
  const address = (chart, zoom) => `${chart.box.dataset.source}${chart.box.dataset.source.includes("?") ? "&" : "?"}points=${POINTS}${zoom ? `&from=${Math.floor(zoom[0])}&to=${Math.ceil(zoom[1])}` : ""}`;

  async function load(chart, fresh) {
    try {
      const whole = chart.kind.startsWith("compare") ? chart.box.dataset.source : address(chart, chart.zoom);
      chart.told = await ask(whole, fresh);
      draw(chart);
    } catch { /* What the server drew stays. */ }
  }

  function draw(chart) {
    const made = KINDS[chart.kind](chart, chart.told);
    if (!made || made.x.length < 1) return;
    chart.made = made;
    const same = chart.drawn && chart.shape === shapeOf(made);
    const data = [made.x, ...made.lines.map((line) => line.drawn)];
    if (same) {
      chart.drawn.setData(data, false);
      chart.drawn.setScale("x", rangeOf(chart));
      return;
    }
    chart.drawn?.destroy();
    chart.shape = shapeOf(made);
    chart.plot.replaceChildren();
    chart.drawn = new uPlot(options(chart), data, chart.plot);
    chart.plot.tabIndex = 0;
    keys(chart);
    chart.box.classList.add("scripted");
  }
  const shapeOf = (made) => JSON.stringify(made.lines.map((line) => [line.name, line.hidden]));
  function rangeOf(chart) {
    if (chart.zoom && chart.kind !== "memory") return { min: chart.zoom[0], max: chart.zoom[1] };
    const x = chart.made.x, first = x[0], last = x.at(-1);
    return { min: first, max: last > first ? last : first + 1 };
  }

  function options(chart) {
    const { made } = chart, muted = colour("--muted"), rule = colour("--rule");
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: muted, font, ticks: { show: false } };
    return {
      width: chart.plot.clientWidth, height: chart.plot.clientHeight, padding: [8, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      scales: {
        x: { time: false, range: () => { const { min, max } = rangeOf(chart); return [min, max]; } },
        y: { range: (u, low, high) => range(chart, low, high) },
      },
      axes: [
        { ...axis, size: BOTTOM, gap: 6, space: 64, grid: { show: false }, values: (u, at) => at.map(made.xWord), ...(made.xWord === moment ? { splits: (u, i, min, max) => times(min, max, u.bbox.width / devicePixelRatio) } : { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8] }) },
        { ...axis, size: SIDE, gap: 8, space: 42, grid: { stroke: rule, width: 1 }, values: (u, at) => at.map(made.yTick ?? made.yWord) },
      ],
      series: [{}, ...made.lines.map((line) => ({
        label: line.name, stroke: line.stroke, fill: line.fill, dash: line.dash, width: line.width ?? 1.6,
        show: !!line.hidden === chart.hidden.has(line.name), spanGaps: !!line.spanGaps,
        points: { show: !!line.points || made.x.length < 3, size: 5, fill: line.stroke },
        paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
      hooks: {
        draw: [(u) => marks(u, chart)],
        setCursor: [(u) => read(u, chart)],
        setSelect: [(u) => select(u, chart)],
        ready: [(u) => u.over.addEventListener("click", () => pick(u, chart))],
      },
    };
  }
  function range(chart, low, high) {
    if (chart.made.fromZero) return [0, Math.max(chart.made.top ?? high ?? 1, 1000) * 1.06];
    if (low == null) return [0, 1];
    const room = high > low ? (high - low) * .06 : low === 0 ? 1 : Math.abs(low) * .1;
    return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
  }
  const STEPS = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 216e5, 432e5, 864e5];
  function times(min, max, width) {
    const most = Math.max(2, Math.floor(width / 90));
    const each = STEPS.find((step) => (max - min) / step <= most) ?? 864e5 * Math.ceil((max - min) / most / 864e5);
    const all = [];
    for (let at = Math.ceil(min / each) * each; at <= max && all.length < 40; at += each) all.push(at);
    return all;
  }

  // Epochs, and the moment at which it ended.
  function marks(u, chart) {
    const { ctx, bbox } = u, all = chart.made.marks, ratio = devicePixelRatio;
    let free = -Infinity;
    ctx.save();
    ctx.font = `${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    for (const mark of all) {
      const x = Math.round(u.valToPos(mark.time_ms, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const death = mark.kind === "death";
      ctx.strokeStyle = colour(death ? "--line" : "--muted");
      ctx.globalAlpha = death ? 1 : .35;
      ctx.lineWidth = (death ? 2 : 1) * ratio;
      ctx.setLineDash([]);
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      ctx.globalAlpha = 1;
      const width = ctx.measureText(mark.text).width, left = death || x + width + 10 * ratio > bbox.left + bbox.width;
      if (!death && x < free) continue;
      ctx.fillStyle = colour(death ? "--line" : "--muted");
      ctx.textAlign = left ? "right" : "left";
      const at = [mark.text, x + (left ? -5 : 5) * ratio, bbox.top + (death ? 40 : 12) * ratio];
      Object.assign(ctx, { strokeStyle: colour("--card"), lineWidth: 4 * ratio, lineJoin: "round" });
      ctx.strokeText(...at);
      ctx.fillText(...at);
      free = x + width + 24 * ratio;
    }
    ctx.restore();
  }

  // Values go where the peaks stand otherwise, so that nothing jumps.
  function read(u, chart) {
    const at = u.cursor.idx, inside = at != null && u.cursor.left >= 0;
    for (const item of chart.box.querySelectorAll(".keys li[data-name]")) {
      const output = item.querySelector("output"), line = chart.made.lines.find((line) => line.name === item.dataset.name);
      output.dataset.usual ??= output.textContent;
      const value = inside && line ? near(line, at) : undefined;
      output.textContent = inside ? chart.made.yWord(value ?? null) : output.dataset.usual;
    }
    const when = chart.box.querySelector(".when") ?? chart.box.querySelector("figcaption").appendChild(Object.assign(document.createElement("div"), { className: "when" }));
    when.textContent = inside ? `${chart.made.xTitle ?? "at"} ${chart.made.xWord(chart.made.x[at])}` : "";
  }
  // Where curves of several runs do not meet, the last value before.
  function near(line, at) {
    if (!line.spanGaps) return line.raw[at];
    for (let i = at; i >= 0; i--) if (line.raw[i] !== undefined) return line.raw[i];
  }

  async function select(u, chart) {
    const { left, width } = u.select;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (width < 8) return;
    chart.dragged = performance.now();
    await zoom(chart, [u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  }
  async function zoom(chart, to) {
    chart.zoom = to;
    if (chart.kind === "memory") await load(chart, false);
    else chart.drawn.setScale("x", rangeOf(chart));
    let reset = chart.plot.querySelector(".reset");
    if (to && !reset) {
      reset = Object.assign(document.createElement("button"), { type: "button", className: "reset", textContent: "Show all" });
      reset.addEventListener("click", () => zoom(chart, null));
      chart.plot.append(reset);
    } else if (!to) { reset?.remove(); chart.plot.focus({ preventScroll: true }); }
  }

  function pick(u, chart) {
    if (!chart.box.dataset.log || u.cursor.idx == null || performance.now() - (chart.dragged ?? -1e9) < 300) return;
    const start = chart.told.start_ms;
    if (start != null) location.href = `${chart.box.dataset.log}?time=${Math.round(start + chart.made.x[u.cursor.idx])}`;
  }

  // Each key shows and hides its curve.
  function keys(chart) {
    for (const item of chart.box.querySelectorAll(".keys li[data-name]")) {
      const name = item.dataset.name, at = chart.made.lines.findIndex((line) => line.name === name);
      if (at < 0 || item.querySelector("button") || chart.made.lines.length < 2) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...item.childNodes);
      item.append(button);
      button.setAttribute("aria-pressed", !chart.made.lines[at].hidden);
      button.addEventListener("click", () => {
        const now = chart.made.lines.findIndex((line) => line.name === name) + 1;
        if (now < 1) return;
        const shown = !chart.drawn.series[now].show;
        chart.hidden[chart.hidden.has(name) ? "delete" : "add"](name);
        chart.drawn.setSeries(now, { show: shown });
        button.setAttribute("aria-pressed", shown);
      });
    }
  }

  // With the keyboard: arrows move along the curve, Enter reads the log there, Escape shows all again.
  document.addEventListener("keydown", (event) => {
    const chart = [...charts.values()].find((chart) => chart.plot === event.target);
    if (!chart?.drawn) return;
    const u = chart.drawn, steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 };
    if (event.key in steps) {
      const at = Math.min(Math.max((u.cursor.idx ?? 0) + steps[event.key], 0), chart.made.x.length - 1);
      u.setCursor({ left: u.valToPos(chart.made.x[at], "x"), top: 10 });
      event.preventDefault();
    } else if (event.key === "Enter") pick(u, chart);
    else if (event.key === "Escape" && chart.zoom) zoom(chart, null);
  });

  // ---- What a live run tells.
  const FIELDS = {
    "in use": (r) => r.cgroup_usage ?? r.proportional ?? r.resident,
    anonymous: (r) => r.cgroup_usage != null ? r.cgroup_anonymous : r.anonymous,
    files: (r) => r.cgroup_usage != null ? r.cgroup_file == null ? null : Math.max(0, r.cgroup_file - (r.cgroup_shared ?? 0)) : r.file,
    shared: (r) => r.cgroup_usage != null ? r.cgroup_shared : r.shared,
    "the line": (r) => r.budget, resident: (r) => r.resident, ledger: (r) => r.ledger_used, swap: (r) => r.cgroup_swap ?? r.swap,
  };
  // Not all is looked at every time: what lies between the last two looks, if they are not far apart and the run went on
  // evenly meanwhile, is on the line from one to the other. The server does the same with what is recorded.
  const CLOSELY = 1000, EVEN = .05;
  function between(times, values, counted) {
    const to = values.length - 1, from = values.findLastIndex((value, at) => at < to && value != null);
    const line = (of, at) => of[from] + (of[to] - of[from]) * (times[at] - times[from]) / Math.max(1, times[to] - times[from]);
    if (values[to] == null || from < 0 || times[to] - times[from] > 2 * CLOSELY || counted[from] == null || counted[to] == null) return;
    for (let at = from + 1; at < to; at++) {
      const expected = line(counted, at);
      if (counted[at] != null && Math.abs(counted[at] - expected) > EVEN * Math.max(expected, counted[at])) return;
    }
    for (let at = from + 1; at < to; at++) values[at] = Math.round(line(values, at));
  }
  document.addEventListener("tidegate:memory", ({ detail }) => {
    for (const chart of charts.values()) {
      if (chart.kind !== "memory" || chart.zoom || !chart.seen) continue;
      const told = chart.told;
      const simple = chart.box.dataset.source.endsWith("/memory") && told?.series.length && told.time_ms.length < MOST;
      if (!simple) { again(chart, 3000); continue; }
      if (detail.time_ms <= told.last_ms) continue;
      const [word, before] = lastMark(chart, told);
      if (detail.epoch > before && before > 0) told.marks.push({ time_ms: detail.time_ms, kind: "epoch", text: `${word} ${detail.epoch}` });
      Object.assign(told, { epoch: detail.epoch, last_ms: detail.time_ms, samples: told.samples + 1 });
      told.time_ms.push(detail.time_ms);
      told.counted ??= new Array(told.time_ms.length - 1).fill(null);
      told.counted.push(detail.cgroup_usage ?? detail.resident);
      for (const series of told.series) {
        series.values.push(FIELDS[series.name]?.(detail) ?? (series.role === "limit" ? series.values.at(-1) ?? null : null));
        if (series.role === "part" || series.role === "beside") between(told.time_ms, series.values, told.counted);
      }
      draw(chart);
    }
  });
  // The word and number of the epoch, or tree, that was told of last.
  function lastMark(chart, told) {
    const last = told.marks.findLast((mark) => mark.kind === "epoch")?.text.split(" ");
    return [chart.box.dataset.epochs, told.epoch ?? +(last?.at(-1) ?? 0)];
  }

  // Not more often than so.
  function again(chart, every) {
    chart.due ??= setTimeout(() => { chart.due = null; load(chart, true); }, every);
  }

  // Figures have come: those that are drawn move, and what is new is fetched with its place.
  document.addEventListener("tidegate:moved", async ({ detail }) => {
    if (detail.id === "figures-now") {
      const page = await fetched(location.href), now = page?.getElementById("figures"), old = document.getElementById("figures");
      const names = (root) => [...root.querySelectorAll("[data-names]")].map((box) => box.dataset.names + box.dataset.unit).join();
      if (now && old && names(now) !== names(old)) { old.innerHTML = now.innerHTML; begin(old); return; }
      for (const chart of charts.values()) if (chart.kind === "metrics" && chart.seen) load(chart, false);
      answers.clear();
    }
    if (detail.id === "title" && detail.querySelector(".badge.done, .badge.failed, .badge.stopped")) {
      for (const chart of charts.values()) if (chart.kind === "memory" && chart.seen) { answers.clear(); load(chart, true); }
    }
    asking();
  });

  async function fetched(href) {
    try {
      const answer = await fetch(href, { headers: { accept: "text/html" } });
      return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    } catch { return null; }
  }

  // Tabs of a chart change it in its place.
  document.addEventListener("click", async (event) => {
    const tab = event.target.closest(".tabs a");
    if (!tab || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const page = await fetched(tab.href), now = page?.getElementById("memory"), old = document.getElementById("memory");
    if (!now || !old) { location.href = tab.href; return; }
    old.innerHTML = now.innerHTML;
    history.replaceState(null, "", tab.href.replace(/#.*/, ""));
    old.querySelector(".tabs a[aria-current]")?.focus({ preventScroll: true });
    begin(old);
  });

  // What has to be worked out is asked for; when it is there, so is its part of the page.
  const asked = new Set();
  function asking() {
    for (const place of document.querySelectorAll("[data-ask]")) {
      const source = place.dataset.ask;
      if (asked.has(source)) continue;
      asked.add(source);
      fetch(source).catch(() => null).then(async () => {
        const page = await fetched(location.href), part = place.closest("[id]");
        const now = part && page?.getElementById(part.id);
        if (now) { written.set(part.id, now.innerHTML); part.innerHTML = now.innerHTML; localTimes(part); }
      });
    }
  }

  // ---- Charts are filled when they come into sight.
  const sight = new IntersectionObserver((all) => {
    for (const { isIntersecting, target } of all) {
      const chart = charts.get(target);
      if (!isIntersecting || !chart || chart.seen) continue;
      chart.seen = true;
      load(chart, false);
    }
  }, { rootMargin: "300px" });
  const sizes = new ResizeObserver((all) => {
    for (const { target } of all) {
      const chart = charts.get(target.closest(".chart"));
      if (chart?.drawn && target.clientWidth) chart.drawn.setSize({ width: target.clientWidth, height: target.clientHeight });
    }
  });
  function begin(root) {
    for (const [box, chart] of charts) if (!box.isConnected) { chart.drawn?.destroy(); charts.delete(box); }
    for (const box of root.querySelectorAll("[data-chart]")) {
      if (charts.has(box)) continue;
      charts.set(box, chartOf(box));
      sight.observe(box);
      sizes.observe(box.querySelector(".plot"));
    }
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const chart of charts.values()) if (chart.drawn) { chart.shape = null; draw(chart); }
  });
  begin(document);
  asking();
})();
