// Without a mouse: one key leads to everything, and the first stop skips what every page has.
import assert from "node:assert/strict";
import { PAGES } from "./looks.mjs";

export const title = "Every page is walked through with the keyboard";

/** Whatever a person can do something with. */
const USED = "a[href], button:not(:disabled), input:not([type=hidden], :disabled), select:not(:disabled), textarea, summary, [tabindex='0']";

export async function tell(world) {
  const page = await world.open("/");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the page");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  for (const [name, path] of PAGES(world.scene)) {
    await page.goto(world.scene.url + path);
    const missed = await page.evaluate(unreached, USED);
    const walked = await walk(page);
    const left = missed.filter((one) => !walked.has(one)).concat([...walked].filter((one) => one.endsWith("without an outline")));
    assert.deepEqual(left, [], `${name}: no key leads there`);
  }
}

/** Numbers everything that can be used and seen, and names it. */
function unreached(used) {
  const names = [];
  for (const one of document.querySelectorAll(used)) {
    // A group of radio buttons is one stop.
    const group = one.type === "radio" ? [...document.getElementsByName(one.name)] : null;
    const isStop = !group || (group.find((other) => other.checked) ?? group[0]) === one;
    if (!one.checkVisibility({ visibilityProperty: true }) || !isStop) continue;
    one.dataset.stop = `${names.length}: ${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent.trim().slice(0, 40)}`;
    names.push(one.dataset.stop);
  }
  return names;
}

/** Presses the key until it comes round. */
async function walk(page) {
  const seen = new Set();
  for (let presses = 0; presses < 900; presses += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const one = document.activeElement;
      if (one === document.body || one.dataset.walked) return null;
      one.dataset.walked = "yes";
      // Where the focus is must be seen.
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
      return `${one.dataset.stop ?? "made later"}${isSeen ? "" : ", without an outline"}`;
    });
    if (stop === null) break;
    seen.add(stop);
  }
  return seen;
}
