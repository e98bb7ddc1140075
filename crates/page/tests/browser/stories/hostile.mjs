// What comes from outside stays text: a line of a log, a column, a category that would be a script.
import assert from "node:assert/strict";
import { PAGES } from "./looks.mjs";

export const title = "Names, logs and values that would be scripts are text";

export async function tell(world) {
  const page = await world.open("/");
  for (const [name, path] of PAGES(world.scene)) {
    await page.goto(world.scene.url + path);
    await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => { /* An open stream of events. */ });
    assert.notEqual(await page.title(), "taken", name);
    assert.equal(await page.locator("img[src='x'], main script").count(), 0, name);
  }
}
