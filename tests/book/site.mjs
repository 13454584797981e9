// Visits every page of the built site in Chromium and writes down what it saw, as JSON.
//
//     node site.mjs SITE REPORT     (SITE: the built html; REPORT: the file to write)
//
// It judges nothing: the tests beside it do. CHROMIUM names the browser.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize, relative, resolve, sep } from "node:path";
import { chromium } from "playwright-core";

const [site, report] = process.argv.slice(2).map((path) => resolve(path));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const DESKTOP = { width: 1280, height: 900, mobile: false };
const PHONE = { width: 390, height: 844, mobile: true };
const EVERYTHING = { runOnly: AXE_TAGS };
// what the dark can change: colours, and which pictures are shown
const SIGHT = {
  runOnly: ["color-contrast", "link-in-text-block", "image-alt", "role-img-alt", "svg-img-alt"],
};
// a phone shows the colours of the light; to judge them is most of the work
const SHAPE = { ...EVERYTHING, rules: { "color-contrast": { enabled: false } } };
// One load serves all three, in this order. It begins in the dark, for most pages never see it.
const MODES = {
  dark: { scheme: "dark", screen: DESKTOP, rules: SIGHT },
  light: { scheme: "light", screen: DESKTOP, rules: EVERYTHING },
  phone: { scheme: "light", screen: PHONE, rules: SHAPE },
};
const TABS = 3; // pages open at a time: while one of them waits, two keep two cores busy
const PATIENCE = 60_000; // ms, for a page on a busy machine
// ms, a little more than the theme waits before it looks anew at what scrolls, and so has to be
// reached by keyboard, after a page was loaded or has changed its width
const THEME_WAITS = 350;

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
};

/** Serves the site on a free port of this machine only. */
async function serve() {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const file = join(site, normalize(path));
    try {
      if (file !== site && !file.startsWith(site + sep)) throw new Error("outside the site");
      const body = readFileSync(file);
      response.writeHead(200, {
        "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
        "Cache-Control": "max-age=600",
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

/** Every page but the redirects, which have nothing to look at. */
function pages() {
  return readdirSync(site, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".html"))
    .map((entry) => relative(site, join(entry.parentPath ?? entry.path, entry.name)))
    .filter((path) => !path.startsWith("_static") && !path.startsWith("_sources"))
    .filter((path) => !/http-equiv="refresh"/i.test(readFileSync(join(site, path), "utf8")))
    .map((path) => path.split(sep).join("/"))
    .sort();
}

/** A tab that remembers what it was told and what it asked for. */
async function watched(context) {
  const tab = await context.newPage();
  const seen = { errors: [], requests: [], failures: [] };
  tab.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  tab.on("pageerror", (error) => seen.errors.push(String(error)));
  tab.on("request", (request) => seen.requests.push(request.url()));
  tab.on("websocket", (socket) => seen.requests.push(socket.url()));
  tab.on("requestfailed", (request) => seen.failures.push(request.url()));
  tab.on("response", (response) => response.status() >= 400 && seen.failures.push(response.url()));
  return { tab, seen };
}

/** Opens what is folded, for it has to be as good as the rest, and ends what still moves. */
function unfold() {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const step of document.querySelectorAll(".later")) step.classList.remove("later");
  document.documentElement.dataset.notes = "";
  for (const folded of document.querySelectorAll(".toggle-hidden")) {
    folded.classList.remove("toggle-hidden");
  }
  const style = document.createElement("style");
  style.textContent =
    ".sd-tab-content { display: block !important }" +
    "*, ::before, ::after { transition: none !important; animation: none !important }";
  document.head.append(style);
}

/**
 * Takes away what axe would look at for long and find nothing new in: all but one of each kind of
 * token in code, which look alike, and the inside of pictures, of which a reader hears the name.
 */
function thin() {
  for (const part of document.querySelectorAll("svg[role=img] > :not(title)")) part.remove();
  const known = new Set();
  for (const code of document.querySelectorAll("pre, dt.sig")) {
    let where = "";
    for (let above = code; above; above = above.parentElement) where += ` ${above.className}`;
    for (const token of code.querySelectorAll("span[class]:not([id])")) {
      const kind = `${where} ${token.parentElement.className} ${token.className}`;
      if (known.has(kind)) token.replaceWith(...token.childNodes);
      known.add(kind);
    }
    code.normalize();
  }
}

/** The words of the page, without code and formulas. */
function words() {
  const main = document.querySelector("article") ?? document.querySelector("main");
  const prose = (main ?? document.body).cloneNode(true);
  const notProse = "pre, code, script, style, mjx-container, .math, .headerlink";
  for (const element of prose.querySelectorAll(notProse)) element.replaceWith(" ");
  for (const block of prose.querySelectorAll("p, li, td, th, dt, dd, div, h1, h2, h3, h4")) {
    block.append("\n");
  }
  return prose.textContent.replace(/[ \t]+/g, " ").replace(/\s*\n\s*/g, "\n");
}

/** What the page is like, measured inside it. */
function look(width) {
  const formulas = [...document.querySelectorAll("span.math, div.math")];
  const fonts = [...document.fonts].filter((font) => font.family.startsWith("MJX"));
  const name = (element) =>
    `<${[element.localName, ...element.classList].join(".")}> ${element.textContent.trim().slice(0, 60)}`;

  // Sticks out: wider than the page, or filled wider, and no box around it that scrolls.
  const reach = (element) => element.getBoundingClientRect().left + element.scrollWidth;
  const scrolls = (element) =>
    element !== null &&
    ((getComputedStyle(element).overflowX !== "visible" &&
      element.getBoundingClientRect().right <= width + 1) ||
      scrolls(element.parentElement));
  const { scrollWidth } = document.scrollingElement;
  const main = document.querySelector("article") ?? document.querySelector("main");
  const inside = scrollWidth > width ? (main ?? document.body).querySelectorAll("*") : [];
  const wide = [...inside].filter((element) => reach(element) > width + 1 && !scrolls(element));

  return {
    formulas: formulas.length,
    unrendered: formulas.filter((one) => !one.querySelector("mjx-container")).map(name),
    broken: [...document.querySelectorAll("mjx-merror, [data-mjx-error]")].map(name),
    fontsLoaded: fonts.filter((font) => font.status === "loaded").length,
    fontsFailed: fonts.filter((font) => font.status === "error").length,
    scrollWidth,
    wide: wide.slice(-5).map(name), // the innermost come last
    theme: document.documentElement.dataset.theme,
  };
}

/** The theme of the page, after it has been drawn anew and so heard of a change. */
async function drawn() {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return document.documentElement.dataset.theme;
}

async function settle(tab) {
  await tab.evaluate(async () => {
    await window.MathJax?.startup?.promise;
    await document.fonts.ready;
  });
}

/** What axe finds, in the mode that the page is in. */
async function violations(tab, rules) {
  const found = await tab.evaluate(
    (chosen) => window.axe.run(document, { ...chosen, resultTypes: ["violations"] }),
    rules
  );
  return found.violations.map(({ id, help, nodes }) => ({
    rule: id,
    help,
    count: nodes.length,
    nodes: nodes.slice(0, 8).map(({ html, failureSummary }) => ({ html, why: failureSummary })),
  }));
}

/** Loads a page and makes it ready to be looked at. */
async function open(tab, url) {
  await tab.goto(url, { waitUntil: "load", timeout: PATIENCE });
  await settle(tab);
  await tab.evaluate(unfold);
  await tab.evaluate(thin);
  await tab.evaluate(AXE);
}

async function visit(context, url) {
  const { tab, seen } = await watched(context);
  try {
    const device = await context.newCDPSession(tab);
    const modes = {};
    for (const [mode, { scheme, screen, rules }] of Object.entries(MODES)) {
      await tab.emulateMedia({ colorScheme: scheme });
      await device.send("Emulation.setDeviceMetricsOverride", { ...screen, deviceScaleFactor: 1 });
      // a page of the book follows at once; the slides do when they are loaded
      if ((await tab.evaluate(drawn)) !== scheme) await open(tab, url);
      await tab.waitForTimeout(THEME_WAITS);
      const looked = await tab.evaluate(look, screen.width);
      modes[mode] = { ...looked, violations: await violations(tab, rules) };
    }
    return { text: await tab.evaluate(words), modes, ...seen };
  } catch (error) {
    throw new Error(`${url}: ${error}`);
  } finally {
    await tab.close();
  }
}

/** What the search page lists for a question. */
async function search(context, origin, question) {
  const { tab, seen } = await watched(context);
  const hits = "#search-results ul.search li a";
  try {
    const query = new URLSearchParams({ q: question });
    await tab.goto(`${origin}/search.html?${query}`, { waitUntil: "load", timeout: PATIENCE });
    await tab.waitForSelector(hits, { timeout: 15_000 }).catch(() => {});
    const found = await tab.$$eval(hits, (links) => links.map((link) => link.textContent));
    return { question, found, ...seen };
  } finally {
    await tab.close();
  }
}

/** What the filters of the scorecard leave, worked by keyboard alone; and the page without them. */
async function filters(browser, context, url) {
  const still = await browser.newContext({ javaScriptEnabled: false });
  const plain = await still.newPage();
  await plain.goto(url, { timeout: PATIENCE });
  const count = (what) => plain.locator(what).count();
  const found = {
    "without a script": {
      cards: await count(".auditkit-claim"),
      hidden: await count(".auditkit-claim:not(:visible)"),
      forms: await count("form.auditkit-filters"),
    },
  };
  await still.close();

  const tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE);
  const shown = () =>
    tab.$$eval(".auditkit-claim:not([hidden])", (cards) => cards.map((card) => card.id));
  await tab.goto(url);
  found["at first"] = await tab.textContent(".auditkit-filters output");
  await tab.focus(".auditkit-filters select");
  await tab.keyboard.type("SUB");
  const sections = await tab.$$eval("section:not([hidden]):has(> .auditkit-claim)", (all) =>
    all.map((one) => one.querySelector(".auditkit-claim").id)
  );
  found.paper = { shown: await shown(), sections };
  await tab.keyboard.press("Tab");
  await tab.keyboard.press("Tab");
  await tab.keyboard.type("from scratch");
  found["paper and words"] = { shown: await shown() };
  found.address = await tab.evaluate(() => location.search);
  await tab.reload();
  found["from the address"] = await shown();
  await tab.evaluate(() => (location.hash = "OBS-1"));
  await tab.waitForFunction(() => !document.getElementById("OBS-1").hidden);
  found["after a link to another"] = (await shown()).length;
  await tab.close();
  return found;
}

/** Where the keys lead on the slides, and how many pages they print. */
async function slides(context, url) {
  const tab = await context.newPage();
  await tab.goto(url, { waitUntil: "load", timeout: PATIENCE });
  const keys = ["ArrowRight", "ArrowDown", "PageDown", " ", "ArrowLeft", "End", "ArrowRight", "Home"];
  const led = [];
  for (const key of keys) {
    await tab.keyboard.press(key);
    // asked in the page: what the driver knows of the address arrives later
    led.push(await tab.evaluate(() => location.hash.slice(1)));
  }
  const order = await tab.$$eval("section", (sections) => sections.map(({ id }) => id));
  const pdf = await tab.pdf({ preferCSSPageSize: true, timeout: PATIENCE });
  await tab.close();
  return { order, led, printed: pdf.toString("latin1").match(/\/Type \/Page\b/g).length };
}

/** What the keys do on a deck, from its start to its end and back, and what it prints. */
async function deck(context, url) {
  const { tab, seen } = await watched(context);
  await tab.goto(url, { waitUntil: "load", timeout: PATIENCE });
  await settle(tab);
  const later = ".later:not(mjx-assistive-mml *)";
  const state = () =>
    tab.evaluate((what) => [location.hash.slice(1), document.querySelectorAll(what).length], later);
  const hidden = () =>
    tab.$$eval(
      later,
      (all) => all.filter((one) => getComputedStyle(one).visibility === "hidden").length
    );
  const notes = () =>
    tab.$$eval(".notes", (all) => all.filter((one) => one.getClientRects().length).length);
  const steps = await tab.$$eval(
    "section",
    (all, what) => all.map((one) => one.querySelectorAll(what).length),
    later
  );
  const found = { steps, hidden: await hidden(), notes: [await notes()] };
  for (const _ of [1, 2]) {
    await tab.keyboard.press("n");
    found.notes.push(await notes());
  }
  await tab.click("h1");
  found.clicked = await state();
  await tab.keyboard.press("Home");
  const last = await tab.$$eval("section", (all) => all.at(-1).id);
  found.presses = 0;
  for (let at = await state(); (at[0] !== last || at[1]) && found.presses < 500; at = await state()) {
    await tab.keyboard.press("ArrowRight");
    found.presses += 1;
  }
  found.there = await state();
  for (let i = 0; i < found.presses; i += 1) await tab.keyboard.press("ArrowLeft");
  found.back = await state();
  const pdf = await tab.pdf({ preferCSSPageSize: true, timeout: PATIENCE });
  found.printed = pdf.toString("latin1").match(/\/Type \/Page\b/g).length;
  await tab.emulateMedia({ media: "print" });
  found["hidden in print"] = await hidden();
  await tab.close();
  return { ...found, errors: seen.errors };
}

const server = await serve();
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  chromiumSandbox: false,
  args: [
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", // offline, whatever a page wants
  ],
});
const seen = { origin, pages: {}, search: null, filters: null, slides: null, decks: {} };
try {
  const context = await browser.newContext({ viewport: null, reducedMotion: "reduce" });
  const queue = pages();
  const worker = async () => {
    for (let path = queue.shift(); path; path = queue.shift()) {
      seen.pages[path] = await visit(context, `${origin}/${path}`);
    }
  };
  await Promise.all(Array.from({ length: TABS }, worker));
  await context.close();

  const plain = await browser.newContext();
  seen.search = await search(plain, origin, "substitute adjacency");
  const [scorecard, slideshow] = ["book/scorecard.html", "book/slides.html"];
  if (scorecard in seen.pages) {
    seen.filters = await filters(browser, plain, `${origin}/${scorecard}`);
  }
  if (slideshow in seen.pages) seen.slides = await slides(plain, `${origin}/${slideshow}`);
  for (const path of Object.keys(seen.pages).filter((one) => one.startsWith("book/decks/"))) {
    seen.decks[path] = await deck(plain, `${origin}/${path}`);
  }
  const figures = "book/figures.html";
  if (figures in seen.pages) {
    const tab = await plain.newPage();
    await tab.goto(`${origin}/${figures}?paper=FND&kind=figure&words=threshold`);
    seen.figures = await tab.$$eval("section:not([hidden]) > .auditkit-entry", (entries) =>
      entries.map((entry) => entry.id)
    );
    await tab.close();
  }
} finally {
  await browser.close();
  server.close();
}
writeFileSync(report, JSON.stringify(seen, null, 1));
