// Looks at one report in Chromium, in light, dark, print and on a phone, and writes down what it saw.
//
//     node report.mjs PAGE     (CHROMIUM names the browser)

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const DESKTOP = { width: 1100, height: 900 };
const MODES = {
  light: { colorScheme: "light", viewport: DESKTOP },
  dark: { colorScheme: "dark", viewport: DESKTOP },
  print: { colorScheme: "dark", viewport: { width: 690, height: 1000 } }, // A4 less its margins
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  chromiumSandbox: false,
  args: ["--disable-gpu"],
});
const seen = {};
for (const [mode, options] of Object.entries(MODES)) {
  const context = await browser.newContext({ ...options, bypassCSP: true });
  const page = await context.newPage();
  let requests = 0;
  const said = [];
  page.on("request", () => (requests += 1));
  page.on("console", (message) => said.push(message.text()));
  page.on("dialog", (dialog) => said.push(dialog.message()) && dialog.dismiss());
  if (mode === "print") await page.emulateMedia({ media: "print" });
  await page.goto(pathToFileURL(process.argv[2]).href);
  await page.addScriptTag({ content: AXE });
  seen[mode] = {
    requests,
    said,
    overflow: await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth),
    background: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
    violations: await page.evaluate(async () => {
      const found = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa"] });
      return found.violations.map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 120)}`);
    }),
  };
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(seen));
