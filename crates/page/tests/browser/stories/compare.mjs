// Two runs beside each other.
import assert from "node:assert/strict";
import { text } from "../world.mjs";

export const title = "Two runs are chosen in the list and compared";

export async function tell(world) {
  const page = await world.open("/");
  for (const name of ["trees", "line"]) await page.getByRole("checkbox", { name: `Compare ${name}` }).check();
  await page.getByRole("button", { name: "Compare the chosen" }).click();
  await page.waitForURL(/\/compare\?/);
  await page.getByRole("heading", { level: 1, name: "2 runs compared" }).waitFor();
  const facts = page.getByRole("region", { name: "Facts" });
  for (const word of ["trees", "line", "boost", "linear", "flights.csv"]) {
    assert.ok((await text(facts)).includes(word), word);
  }
  const jobs = page.getByRole("region", { name: "Their jobs" });
  assert.match(await text(jobs), /seed.*(3.*5|5.*3)/);
  assert.ok(await page.getByRole("img", { name: /Memory of 2 runs/ }).isVisible());
}
