// Works the widgets in Chromium, on pages opened from disk, and writes down what it saw, as JSON.
//
//     node widgets.mjs PAGE CALLS REPORT
//
// PAGE: html with every widget; CALLS: [[function, arguments], ...] of the namespace `auditkit`.
// It judges nothing: the tests beside it do. CHROMIUM names the browser.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page, calls, report] = process.argv.slice(2);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const url = pathToFileURL(page).href;

/** One call after another; JSON has no infinity. */
const evaluate = (calls) =>
  JSON.stringify(
    calls.map(([name, values]) => auditkit[name](...values)),
    (_, value) => (value === Infinity ? "Infinity" : value)
  );

/** A widget, worked by the keys alone: what it says before and after a slider was moved. */
async function work(tab, name) {
  const figure = tab.locator(`[data-widget="${name}"]`);
  const said = () => figure.locator("output").textContent();
  const slider = figure.locator("input[type=range]").first();
  const before = await said();
  const heard = () => slider.getAttribute("aria-valuetext");
  const value = await heard();
  await slider.focus();
  await tab.keyboard.press("ArrowLeft");
  return {
    before, after: await said(), value, moved: await heard(),
    picture: await figure.locator(".stage > svg").getAttribute("aria-label"),
    width: await figure.locator(".stage > svg").getAttribute("width"),
  };
}

/** Null audits that are dealt anew by the button, without motion. */
async function dealAgain(tab) {
  const figure = tab.locator('[data-widget="null_audits"]');
  await figure.scrollIntoViewIfNeeded();
  const said = () => figure.locator("output").textContent();
  const told = () => document.querySelector('[data-widget="null_audits"] output').textContent;
  await tab.waitForFunction(told);
  const first = await said();
  await figure.getByRole("button").focus();
  await tab.keyboard.press("Enter");
  await tab.waitForTimeout(200);
  return { first, second: await said(), dots: await figure.locator("circle").count() };
}

/** The walk, by keys: no, no, yes; then where the focus is, and again. */
async function walk(tab) {
  const figure = tab.locator('[data-widget="walk"]');
  const shown = () => figure.locator("figcaption > ol > li:visible").allInnerTexts();
  const atFirst = await shown();
  await figure.getByRole("button", { name: "No" }).focus();
  await tab.keyboard.press("Enter");
  await tab.keyboard.press("Tab"); // from Yes, which has the focus, to No
  await tab.keyboard.press("Enter");
  await tab.keyboard.press("Enter");
  const afterYes = await shown();
  const focus = await tab.evaluate(() => document.activeElement.textContent);
  await tab.keyboard.press("Enter");
  const heard = await figure.locator("output").textContent();
  return { atFirst, afterYes, focus, again: await shown(), heard };
}

/** The calculator's words, as it stands, for two worlds, with a fault, and from the address. */
async function calculate(tab) {
  const figure = tab.locator('[data-widget="calculator"]');
  const said = () => figure.locator("output p").allTextContents();
  const found = { first: await said() };
  await figure.locator("select").selectOption("two worlds");
  found.worlds = await said();
  await figure.locator("[name=false_positives]").fill("2000");
  found.fault = await said();
  await figure.locator("[name=false_positives]").fill("3");
  found.changed = await said();
  await tab.reload();
  found.reloaded = await said();
  return found;
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  chromiumSandbox: false,
  args: ["--disable-gpu", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND"], // offline
});
const seen = { errors: [], requests: [] };
try {
  const context = await browser.newContext({ reducedMotion: "reduce" });
  const tab = await context.newPage();
  tab.setDefaultTimeout(60_000);
  tab.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  tab.on("pageerror", (error) => seen.errors.push(String(error)));
  tab.on("request", (request) => seen.requests.push(request.url()));
  await tab.goto(url);
  seen.results = await tab.evaluate(evaluate, JSON.parse(readFileSync(calls, "utf8")));
  seen.widgets = {};
  const names = await tab.$$eval("[data-widget]:has(input[type=range])", (all) =>
    all.map((one) => one.dataset.widget)
  );
  for (const name of names) seen.widgets[name] = await work(tab, name);
  seen.nulls = await dealAgain(tab);
  seen.walk = await walk(tab);
  seen.calculator = await calculate(tab);
  await tab.evaluate(AXE);
  // axe would load style sheets anew, which a page from disk may not
  const options = { preload: false, resultTypes: ["violations"] };
  const { violations } = await tab.evaluate((one) => axe.run("[data-widget]", one), options);
  seen.violations = violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]);
  await tab.setViewportSize({ width: 390, height: 844 });
  await tab.waitForTimeout(300);
  seen.phone = await tab.evaluate(() => document.scrollingElement.scrollWidth);

  const still = await browser.newContext({ javaScriptEnabled: false });
  const plain = await still.newPage();
  await plain.goto(url);
  seen.withoutScript = await plain.locator("[data-widget]").allInnerTexts();
} finally {
  await browser.close();
}
writeFileSync(report, JSON.stringify(seen, null, 1));
