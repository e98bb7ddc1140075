// From data to a training, all on the page: chosen, planned, started, stopped, taken up again.
import assert from "node:assert/strict";
import { text, until } from "../world.mjs";

export const title = "A training is planned within a budget, started, stopped and resumed";

export async function tell(world) {
  const page = await world.open("/");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Start" }).click();
  await page.getByRole("link", { name: "wide.csv" }).click();
  await page.getByRole("heading", { name: "What is to be predicted?" }).waitFor();
  await page.getByRole("radio", { name: "y", exact: true }).check();
  await page.getByLabel("Kind").selectOption("linear");
  await page.getByLabel("Name of the run").fill("from-the-page");
  await page.getByText("More", { exact: true }).click();
  await page.getByLabel("Epochs at the most").fill("20000");

  // A budget by the slider; what it stands for is written beside it.
  const slider = page.getByRole("slider", { name: "Budget" });
  const budget = page.getByRole("textbox", { name: "Budget" });
  await slider.focus();
  await page.keyboard.press("Home");
  await until("the least budget is written", async () => /MB/.test(await budget.inputValue()));
  const least = await budget.inputValue();
  for (let i = 0; i < 3; i += 1) await page.keyboard.press("PageUp");
  await until("a larger one is written", async () => (await budget.inputValue()) !== least);
  // What does not fit is refused, with what would do.
  await budget.fill("5MB");
  const plan = page.locator("#plan");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await until("a refusal", async () => /MB/.test(await text(plan)) && !/It fits/.test(await text(plan)));
  await budget.fill("128MB");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await until("a plan", async () => /It fits: .* of 128 MB/.test(await text(plan)));
  await world.shot(page, "story-plan");

  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/runs\/[a-z0-9]+$/);
  await page.getByRole("heading", { level: 1, name: "from-the-page" }).waitFor();
  const first = page.url();
  const state = page.locator("#state");
  await until("it learns", async () => /epoch \d/.test(await text(state)));
  await page.getByRole("button", { name: "Stop" }).click();
  await until("it is stopped", async () => /Stopped on request/.test(await text(state)));

  await page.getByRole("button", { name: "Resume" }).click();
  await page.waitForURL((url) => /\/runs\/[a-z0-9]+$/.test(url.pathname) && url.href !== first);
  await until("it goes on", async () => /Running|running/.test(await text(state)));
  await page.getByRole("button", { name: "Stop" }).click();
  await until("it is stopped again", async () => /Stopped on request/.test(await text(state)));
  assert.notEqual(page.url(), first);
}
