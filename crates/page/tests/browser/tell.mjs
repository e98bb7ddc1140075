// Tells the stories of the page in a real Chromium and says which went wrong: `node tell.mjs SCENE.json [WORD OF A TITLE]`.
//
// The scene is made by the test `served` (crates/tidegate/tests/served): where the page is, which runs its home has,
// and where Chromium, the packages and the screenshots are.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { World } from "./world.mjs";
import * as compare from "./stories/compare.mjs";
import * as failed from "./stories/failed.mjs";
import * as hostile from "./stories/hostile.mjs";
import * as keyboard from "./stories/keyboard.mjs";
import * as live from "./stories/live.mjs";
import * as looks from "./stories/looks.mjs";
import * as reading from "./stories/reading.mjs";
import * as start from "./stories/start.mjs";

const STORIES = [failed, live, compare, start, reading, keyboard, hostile, looks];
const [path, wanted = ""] = process.argv.slice(2);
const scene = JSON.parse(readFileSync(path, "utf8"));
const load = createRequire(`${scene.modules}/`);
const { chromium } = load("playwright-core");

const browser = await chromium.launch({
  executablePath: scene.chromium,
  // As root Chromium has no sandbox, and in containers /dev/shm is small.
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
let wrong = 0;
for (const { title, tell } of STORIES.flatMap((story) => story.stories ?? [story])) {
  if (!title.includes(wanted)) continue;
  const began = Date.now();
  const world = new World(browser, scene, load("axe-core").source);
  let said = "told";
  try {
    await tell(world);
    world.nothingWentWrong();
  } catch (error) {
    wrong += 1;
    said = `WENT WRONG\n${indented(error.stack)}`;
    await world.keepWhatWasSeen(title);
  }
  await world.end();
  console.log(`${title}: ${said} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
}
await browser.close();
console.log(wrong ? `${wrong} went wrong` : "all is as it should be");
process.exit(wrong ? 1 : 0);

function indented(text) {
  return String(text).split("\n").map((line) => `    ${line}`).join("\n");
}
