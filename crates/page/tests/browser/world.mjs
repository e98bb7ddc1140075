// What a story is told with: pages of a browser that are watched for what should never happen, and things to wait for.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";

/** No page takes a tenth of this, but for a machine that is busy with other things. */
export const PATIENCE = 20_000;
const WIDTHS = { desk: 1280, phone: 360 };

export class World {
  constructor(browser, scene, axe) {
    this.browser = browser;
    this.scene = scene;
    this.axe = axe;
    this.contexts = [];
    this.programs = [];
    this.trouble = [];
    mkdirSync(scene.shots, { recursive: true });
  }

  /** Opens a path of the page, on a desk unless it says otherwise. */
  async open(path, { scripts = true, dark = false, width = WIDTHS.desk } = {}) {
    const context = await this.browser.newContext({
      javaScriptEnabled: scripts,
      colorScheme: dark ? "dark" : "light",
      viewport: { width, height: width < 500 ? 740 : 900 },
      hasTouch: width < 500,
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(PATIENCE);
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: this.scene.url });
    this.contexts.push(context);
    const page = await context.newPage();
    this.watch(page);
    const answer = await page.goto(this.scene.url + path);
    assert.equal(answer.status(), 200, `${path}: ${answer.status()}`);
    return page;
  }

  /** The same page on a telephone. */
  phone(path, options = {}) {
    return this.open(path, { ...options, width: WIDTHS.phone });
  }

  /** Scripts that fail, what the policy forbids, and whatever is asked of another server. */
  watch(page) {
    const tell = (what) => this.trouble.push(`${new URL(page.url()).pathname}: ${what}`);
    page.on("pageerror", (error) => tell(error.message));
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) tell(message.text()); });
    page.on("dialog", (dialog) => { tell(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(this.scene.url) && !url.startsWith("data:")) tell(`${url} was asked for`);
    });
    page.on("response", (answer) => { if (answer.status() >= 500) tell(`${answer.url()}: ${answer.status()}`); });
  }

  /** Problems that the story brought about itself and expects. */
  expect(what) {
    const found = this.trouble.filter((told) => told.includes(what));
    assert.ok(found.length, `nothing was told of ${what}: ${this.trouble.join("; ")}`);
    this.trouble = this.trouble.filter((told) => !told.includes(what));
  }

  nothingWentWrong() {
    assert.deepEqual(this.trouble, []);
  }

  /** Starts the program beside the page, on its home. */
  run(...words) {
    const program = spawn(this.scene.program, ["--home", this.scene.home, ...words], { cwd: this.scene.work, stdio: "ignore" });
    this.programs.push(program);
    return program;
  }

  async shot(page, name) {
    await page.screenshot({ path: `${this.scene.shots}/${name}.png`, fullPage: true, animations: "disabled" });
  }

  async keepWhatWasSeen(title) {
    const pages = this.contexts.flatMap((context) => context.pages());
    const name = title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
    for (const [at, page] of pages.entries()) await this.shot(page, `wrong-${name}-${at}`).catch(() => {});
  }

  async end() {
    for (const program of this.programs) program.kill("SIGKILL");
    for (const context of this.contexts) await context.close();
  }
}

/** Waits until something is so. */
export async function until(what, isSo) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    if (await isSo()) return;
    if (Date.now() > end) assert.fail(`waited in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** The text of what is there, its blanks made one. */
export async function text(locator) {
  return (await locator.innerText()).replaceAll(/\s+/g, " ").trim();
}

/** Marks a page, so that it can be told whether it was loaded anew. */
export async function mark(page) {
  await page.evaluate(() => { window.sameAsBefore = true; });
}

export async function isMarked(page) {
  return page.evaluate(() => window.sameAsBefore === true);
}
