// Without scripts: everything can be read, chosen and sent.
import assert from "node:assert/strict";
import { text } from "../world.mjs";

export const title = "Every page can be read without JavaScript";

export async function tell(world) {
  const { runs } = world.scene;
  const page = await world.open("/", { scripts: false });
  await page.getByRole("searchbox").fill("numbers");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("link", { name: "numbers", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "numbers" }).waitFor();
  assert.match(await text(page.locator("#state")), /Done: .*peak/);
  // Charts are drawn by the server.
  for (const chart of await page.locator("figure.chart .plot").all()) {
    assert.ok(await chart.locator("svg path, svg polyline").count(), await chart.getAttribute("aria-label"));
  }

  const failed = await world.open(`/runs/${runs.wrong}/log`, { scripts: false });
  assert.match(await text(failed.locator("ol#lines")), /cleaning up 299/);
  await failed.goto(`${world.scene.url}/runs/${runs.wrong}/log?at=error`);
  assert.match(await text(failed.locator("ol#lines")), /ValueError/);

  const start = await world.open("/start", { scripts: false });
  await start.getByRole("link", { name: "flights.csv" }).click();
  await start.getByRole("radio", { name: "late", exact: true }).check();
  await start.getByRole("textbox", { name: "Budget" }).fill("128MB");
  await start.getByRole("button", { name: "Plan", exact: true }).click();
  assert.match(await text(start.locator("#plan")), /It fits: .* of 128 MB/);
}
