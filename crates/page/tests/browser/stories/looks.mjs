// How every page looks: in light and in the dark, on a desk and on a telephone, for all who read it in other ways.
import assert from "node:assert/strict";
import { until } from "../world.mjs";

/** Every kind of page, with what there is to see on it. */
export const PAGES = ({ runs, work }) => [
  ["runs", "/"],
  ["runs-none-found", "/?q=nothing+is+called+so"],
  ["run-of-a-table", `/runs/${runs.trees}`],
  ["run-of-numbers", `/runs/${runs.numbers}`],
  ["run-of-images", `/runs/${runs.shapes}`],
  ["run-that-died", `/runs/${runs.dead}`],
  ["run-by-process", `/runs/${runs.dead}?memory=processes`],
  ["log", `/runs/${runs.wrong}/log`],
  ["log-at-the-error", `/runs/${runs.wrong}/log?at=error`],
  ["compare", `/compare?run=${runs.trees}&run=${runs.line}&run=${runs.dead}`],
  ["start", "/start"],
  ["start-a-table", `/start?data=${encodeURIComponent(`${work}/flights.csv`)}`],
  ["plan", `/start?data=${encodeURIComponent(`${work}/flights.csv`)}&target=late&memory=128MB&plan=1`],
  ["machine", "/machine"],
];

/** Shifts that nobody sees, summed as browsers do it. */
const STEADY = 0.05;

export const stories = PAGES({ runs: {}, work: "" }).map(([name], at) => ({
  title: `The page "${name}" can be read by everyone`,
  tell: (world) => look(world, ...PAGES(world.scene)[at]),
}));

async function look(world, name, path) {
  const desk = await world.open(path);
  await settled(desk);
  const { sum, moved } = await desk.evaluate(shifts);
  assert.ok(sum < STEADY, `${name} jumps while it is loaded: ${sum}: ${moved.join(", ")}`);
  await world.shot(desk, `${name}-light`);
  await barriers(world, desk, `${name}, light`);
  await desk.emulateMedia({ colorScheme: "dark" });
  await world.shot(desk, `${name}-dark`);
  await barriers(world, desk, `${name}, dark`);

  const phone = await world.phone(path);
  await settled(phone);
  assert.deepEqual(await phone.evaluate(tooWide), [], `${name} is wider than a telephone`);
  await world.shot(phone, `${name}-phone`);
  await barriers(world, phone, `${name}, on a telephone`);
}

/** What is still worked out has come, or is said not to. */
async function settled(page) {
  await until("nothing is waited for", async () => (await page.locator("[data-ask]").count()) === 0);
}

/** What makes the page wider than the screen: elements that stick out and are in no box that scrolls. */
function tooWide() {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const scrolls = (one) => one && one !== document.body && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
  const out = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > clientWidth + 1 && !scrolls(one.parentElement));
  return [`${scrollWidth} of ${clientWidth}`, ...out.slice(0, 5).map((one) => `${one.tagName} ${one.className?.baseVal ?? one.className} in ${one.closest("[id]")?.id}: ${one.textContent.slice(0, 40)}`)];
}

/** How far things have moved in all, and what it was. */
function shifts() {
  return new Promise((done) => {
    let sum = 0;
    const moved = new Set();
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries().filter((entry) => !entry.hadRecentInput)) {
        sum += entry.value;
        for (const { node, previousRect: from, currentRect: to } of entry.sources) {
          moved.add(`${node?.id || node?.className || node?.nodeName} from ${from.y} to ${to.y}`);
        }
      }
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done({ sum, moved: [...moved] }), 50);
  });
}

/** What axe finds, each with where it is. */
async function barriers(world, page, name) {
  await page.evaluate(world.axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, at: nodes.slice(0, 3).map((node) => `${node.target} ${node.any?.[0]?.message ?? ""}`) }));
  });
  const told = found.map(({ id, impact, help, at }) => `${impact}: ${id}: ${help}: ${at.join(" | ")}`);
  assert.deepEqual(told, [], name);
}
