// A run has failed: from the list to why, to what would help, and into its log.
import assert from "node:assert/strict";
import { text, until } from "../world.mjs";

export const title = "A failed run is understood, from the list to the line of its log";

export async function tell(world) {
  const page = await world.open("/");
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "dead", exact: true }) });
  assert.match(await text(row), /failed/);
  await row.getByRole("link", { name: "dead", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "dead" }).waitFor();

  // The verdict is worked out while the page is read.
  const verdict = page.locator("#verdict");
  await until("a verdict with evidence", async () => /Evidence/.test(await text(verdict)));
  assert.match(await text(verdict), /proven|likely|unknown/);
  assert.match(await text(verdict), /64 MB|line/);
  if (await page.getByRole("heading", { name: "Where memory grew" }).count()) {
    assert.match(await text(page.getByRole("region", { name: "Where memory grew" })), /return \[pow/);
    assert.match(await text(verdict), /saves about \d/);
    const copy = verdict.getByRole("button", { name: "Copy the change" }).first();
    await copy.click();
    await until("it is said that it was copied", async () => /Copied/.test(await copy.textContent()));
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /maxsize=\d+/);
  }

  await verdict.getByRole("link", { name: "Read the logs" }).click();
  await page.waitForURL(/\/log/);
  await page.locator("ol#lines > li").first().waitFor();
  // The last thing that it said is in sight, and so is where it died.
  const lines = page.locator("ol#lines");
  assert.match(await text(lines), /row \d+: best/);
  assert.ok(await page.locator("ol#lines > li.here").isVisible());
}
