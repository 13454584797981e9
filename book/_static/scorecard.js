// Filters for the scorecard: by paper, by verdict, by words. They are made here and not in the page,
// for without a script they would do nothing; the page then shows all claims. What is chosen stands
// in the address, so that it can be passed on.
const cards = [...document.querySelectorAll(".auditkit-claim")];
const papers = [...new Set(cards.map((card) => card.id.split("-")[0]))];
const verdicts = ["reproduced", "partly", "not reproduced", "open"];

const form = document.createElement("form");
form.className = "auditkit-filters";
form.setAttribute("role", "search");
form.setAttribute("aria-label", "Claims");
const choice = (name, label, options) => `<label>${label}
  <select name="${name}"><option value="">all</option>
  ${options.map((one) => `<option>${one}</option>`).join("")}</select></label>`;
form.innerHTML = `${choice("paper", "Paper", papers)} ${choice("verdict", "Verdict", verdicts)}
  <label>Words <input name="words" type="search" autocomplete="off"></label>
  <button type="reset">Show all</button> <output></output>`;
document.getElementById("totals")?.append(form);

/** The cards between one heading and the next, which go with it. */
const sections = [...document.querySelectorAll("section[id]")]
  .map((section) => [section, section.querySelectorAll(":scope > .auditkit-claim")])
  .filter(([, inside]) => inside.length);

function filter() {
  const { paper, verdict, words } = Object.fromEntries(new FormData(form));
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  for (const card of cards) {
    const text = card.textContent.toLowerCase();
    card.hidden = !(
      (!paper || card.id.startsWith(`${paper}-`)) &&
      (!verdict || card.dataset.verdict === verdict) &&
      wanted.every((word) => text.includes(word))
    );
  }
  for (const [section, inside] of sections) {
    section.hidden = [...inside].every((card) => card.hidden);
  }
  const left = cards.filter((card) => !card.hidden).length;
  form.querySelector("output").textContent = `${left} of ${cards.length} claims`;
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  const address = `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`;
  history.replaceState(null, "", address);
}

for (const [name, value] of new URLSearchParams(location.search)) {
  if (form.elements[name]) form.elements[name].value = value;
}
// a link to a claim shows it, whatever was chosen before
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
