// A run lives: whoever has a page open sees it move.
import assert from "node:assert/strict";
import { isMarked, mark, text, until } from "../world.mjs";

export const title = "A live run moves on every page that shows it";

/** Grows by a megabyte at a time and says so. */
const GROWS = `x=$(head -c 1000000 /dev/zero | tr '\\0' a); i=0
while [ $i -lt 400 ]; do y="$y$x"; echo "step $i of 400"; i=$((i+1)); [ $i -gt 30 ] && y=; sleep 0.1; done`;

export async function tell(world) {
  // Where nothing was found, too, what comes is shown.
  const list = await world.open("/?q=alive");
  assert.match(await text(list.locator("#list")), /None of/);
  await mark(list);
  const program = world.run("run", "--name", "alive", "--memory", "256MB", "--", "sh", "-c", GROWS);
  const link = list.getByRole("link", { name: "alive", exact: true });
  await link.waitFor();
  const row = list.getByRole("row").filter({ has: link });
  await until("it is said to run", async () => /running/.test(await text(row)));
  assert.ok(await isMarked(list), "the list was loaded anew");

  const run = await world.open(await link.getAttribute("href"));
  await mark(run);
  const state = run.locator("#state");
  await until("its memory is told", async () => /in use/.test(await text(state)));
  const before = await text(state);
  const stop = run.getByRole("button", { name: "Stop" });
  await stop.focus();
  await until("its memory moves", async () => (await text(state)) !== before);
  await until("the list tells it, too", async () => /in use/.test(await text(list.locator("#list"))));
  assert.ok(await stop.evaluate((button) => button === document.activeElement), "the focus was lost");
  await run.getByRole("link", { name: "Follow the log" }).waitFor();

  const log = await world.open(`${await link.getAttribute("href")}/log`);
  await mark(log);
  const last = async () => Number((await text(log.locator("ol#lines"))).match(/step (\d+) of 400(?!.*step)/)?.[1] ?? -1);
  const seen = await last();
  await until("lines come in", async () => (await last()) > seen);

  program.kill("SIGTERM");
  for (const [page, badge] of [[list, row], [run, state]]) {
    await until("it is said to be over", async () => /stopped|failed/.test(await text(badge)));
    assert.ok(await isMarked(page), "a page was loaded anew");
  }
  assert.ok(await isMarked(log), "the log was loaded anew");
}
