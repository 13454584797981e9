// The audit calculator: counts in; bound, ceiling and power out, in the words of the package.
(() => {
  const { count, define, general, make, rounded } = auditkit;
  const { oneRun, oneRunWouldFind, twoWorlds, twoWorldsWouldFind } = auditkit;

  // the assumptions as auditkit.bounds states them
  const COINS =
    "Each example was in, or carried its own label, by a fair coin independent of the others.";
  const FIXED_NUMBER = "The number of guesses was fixed in advance.";
  const INDEPENDENT =
    "What is counted are whole runs of the mechanism and not examples of one run: each on one of " +
    "the same two datasets, independent of the others.";
  const FIXED = "The test was fixed before it met the runs that it is counted on.";

  const KINDS = {
    "one run": {
      counts: {
        correct: ["Right guesses", 90], guesses: ["Guesses", 100],
        examples: ["Examples, each by a coin", 1000],
      },
      most: { correct: "guesses", guesses: "examples" },
      limit: 1e9,
      bound: ({ correct, guesses, examples }, ...at) => oneRun(correct, guesses, examples, ...at),
      ceiling: ({ guesses, examples }, ...at) => oneRun(guesses, guesses, examples, ...at),
      power: ({ guesses, examples }, ...at) => oneRunWouldFind(guesses, examples, ...at),
      words: (delta) =>
        "add/remove adjacency; one run, exact; assumes: " +
        (delta > 0 ? `${COINS} ${FIXED_NUMBER}` : COINS),
    },
    "two worlds": {
      counts: {
        false_positives: ["False positives", 10], negatives: ["Runs without the canary", 1000],
        false_negatives: ["False negatives", 20], positives: ["Runs with the canary", 1000],
      },
      most: { false_positives: "negatives", false_negatives: "positives" },
      limit: 1e6, // its power goes through all likely counts, and more would take long
      bound: ({ false_positives: fp, negatives, false_negatives: fn, positives }, ...at) =>
        twoWorlds(fp, negatives, fn, positives, ...at).epsilon,
      ceiling: ({ negatives, positives }, ...at) =>
        twoWorlds(0, negatives, 0, positives, ...at).epsilon,
      power: ({ negatives, positives }, ...at) => twoWorldsWouldFind(negatives, positives, ...at),
      words: () =>
        "the two worlds' adjacency; two worlds, clopper-pearson, joint confidence; assumes: " +
        `${INDEPENDENT} ${FIXED}`,
    },
  };

  /** What is wrong with the numbers, in a sentence, or nothing. */
  function fault(kind, given) {
    const { counts, most, limit } = KINDS[kind];
    for (const [name, [label]] of Object.entries(counts)) {
      const value = given[name];
      const least = name === "examples" ? 1 : 0;
      if (!Number.isInteger(value) || value < least || value > limit) {
        return `“${label}” takes a whole number from ${least} to ${count(limit)}.`;
      }
      if (value > given[most[name]]) return `“${label}” is at most “${counts[most[name]][0]}”.`;
    }
    const inside = (value) => value > 0 && value < 1;
    if (!(given.delta >= 0 && given.delta < 1)) return "δ is at least 0 and below 1.";
    if (!inside(given.confidence)) return "The confidence is above 0 and below 1, such as 0.95.";
    if (!inside(given.accuracy)) return "The accuracy is above 0 and below 1, such as 0.7.";
  }

  /** Bound, ceiling, and what an attack of some accuracy shows in 4 of 5 such audits. */
  auditkit.answer = (kind, given) => {
    const error = fault(kind, given);
    if (error) return { error };
    const { delta, confidence, accuracy } = given;
    const { bound, ceiling, power, words } = KINDS[kind];
    const epsilon = bound(given, delta, confidence);
    const sure = general(100 * confidence);
    const stated = +sure < 100 ? sure : String(100 * confidence); // 99.99999 is not 100
    return {
      epsilon,
      ceiling: ceiling(given, delta, confidence),
      power: power(given, delta, confidence, accuracy),
      sentence:
        `ε ≥ ${rounded(epsilon)} at δ = ${general(delta)} with ` +
        `${stated}% confidence (lower bound, ${words(delta)})`,
    };
  };

  define("calculator", () => ({
    ready({ form, output }) {
      const asked = new URLSearchParams(location.search);
      const field = ([name, [label, value]]) => {
        const look = { name, inputmode: "decimal", autocomplete: "off" };
        const input = make("input", { ...look, value: asked.get(name) ?? value });
        return make("label", {}, make("span", {}, label), input);
      };
      const choose = make("select", { name: "kind" });
      choose.append(...Object.keys(KINDS).map((kind) => make("option", {}, kind)));
      choose.value = Object.hasOwn(KINDS, asked.get("kind")) ? asked.get("kind") : "one run";
      const counts = make("div", { class: "fields" });
      const rest = {
        delta: ["δ", "1e-5"], confidence: ["Confidence", "0.95"],
        accuracy: ["What if an attack were right in a share of", "0.7"],
      };
      form.append(make("label", {}, make("span", {}, "What was counted"), choose), counts);
      form.append(make("div", { class: "fields" }, ...Object.entries(rest).map(field)));
      const ask = () =>
        counts.replaceChildren(...Object.entries(KINDS[choose.value].counts).map(field));
      function tell() {
        const given = Object.fromEntries(new FormData(form));
        const number = (text) => (text.trim() ? Number(text) : NaN);
        const numbers = Object.entries(given).map(([name, text]) => [name, number(text)]);
        const said = auditkit.answer(given.kind, Object.fromEntries(numbers));
        const lines = said.error ? [said.error] : [
          said.sentence,
          `Ceiling: without a single error the same audit would show ${rounded(said.ceiling)}. ` +
            "It cannot show more.",
          `Power: an attack that is right in ${given.accuracy} of its guesses shows at least ` +
            `${rounded(said.power)} in four of five such audits.`,
          ...(said.epsilon > 0 ? [] : ["A bound of 0 is no certificate of privacy."]),
        ];
        output.replaceChildren(...lines.map((line) => make("p", {}, line)));
        // what was asked can be passed on as an address
        const query = `?${new URLSearchParams(given)}${location.hash}`;
        if (!said.error) history.replaceState(null, "", query);
      }
      choose.addEventListener("input", ask);
      form.addEventListener("input", tell);
      ask();
      tell();
    },
  }));
})();
