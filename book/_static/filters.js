// Filters for the scorecard and the list of figures: by paper, by verdict or kind, by words. They
// are made here and not in the page, for without a script they would do nothing; the page then
// shows everything. What is chosen stands in the address, so that it can be passed on.
const claims = [...document.querySelectorAll(".auditkit-claim")];
const cards = claims.length
  ? claims
  : [...document.querySelectorAll(".auditkit-entry")].map((entry) => entry.closest("section"));
const things = claims.length ? "claims" : "figures and tables";
/** The id that a card stands for: `OBS-F2`. A section of Sphinx has its own in small letters. */
const idOf = (card) => (claims.length ? card : card.querySelector(".auditkit-entry")).id;
const paperOf = (card) => idOf(card).split("-")[0];
const kindOf = (card) => (idOf(card).split("-")[1].startsWith("T") ? "table" : "figure");
// what can be chosen: the name in the address, the label, the options, and what a card has of it
const choices = [["paper", "Paper", [...new Set(cards.map(paperOf))], paperOf]];
if (claims.length) {
  const verdicts = ["reproduced", "partly", "not reproduced", "open"];
  choices.push(["verdict", "Verdict", verdicts, (card) => card.dataset.verdict]);
} else choices.push(["kind", "Kind", ["figure", "table"], kindOf]);

const form = document.createElement("form");
form.className = "auditkit-filters";
form.setAttribute("role", "search");
form.setAttribute("aria-label", things[0].toUpperCase() + things.slice(1));
const choice = ([name, label, options]) => `<label>${label}
  <select name="${name}"><option value="">all</option>
  ${options.map((one) => `<option>${one}</option>`).join("")}</select></label>`;
form.innerHTML = `${choices.map(choice).join(" ")}
  <label>Words <input name="words" type="search" autocomplete="off"></label>
  <button type="reset">Show all</button> <output></output>`;
document.getElementById(claims.length ? "totals" : "count")?.append(form);

/** The cards between one heading and the next, which go with it. */
const sections = [...document.querySelectorAll("section[id]")]
  .map((section) => [section, section.querySelectorAll(":scope > .auditkit-claim")])
  .filter(([, inside]) => inside.length);

function filter() {
  const chosen = Object.fromEntries(new FormData(form));
  const wanted = chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
  for (const card of cards) {
    const text = card.textContent.toLowerCase();
    card.hidden = !(
      choices.every(([name, , , of]) => !chosen[name] || of(card) === chosen[name]) &&
      wanted.every((word) => text.includes(word))
    );
  }
  for (const [section, inside] of sections) {
    section.hidden = [...inside].every((card) => card.hidden);
  }
  const left = cards.filter((card) => !card.hidden).length;
  form.querySelector("output").textContent = `${left} of ${cards.length} ${things}`;
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  const address = `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`;
  history.replaceState(null, "", address);
}

for (const [name, value] of new URLSearchParams(location.search)) {
  if (form.elements[name]) form.elements[name].value = value;
}
// a link to a card shows it, whatever was chosen before
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.closest("[hidden]")) return;
  form.reset();
  filter();
  target.scrollIntoView();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", filter);
form.addEventListener("reset", () => setTimeout(filter));
filter();
