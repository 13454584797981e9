// The exact one-run bound: guesses, and what m δ costs.
(() => {
  const { count, define, oneRun, percent, rounded, steps } = auditkit;

  /** What a count proves where m δ coins may be given away, and what it proves at δ = 0. */
  auditkit.exact = (right, guesses, spent, confidence) => ({
    bound: oneRun(right, guesses, 1, spent, confidence), // m and δ enter by their product alone
    pure: oneRun(right, guesses, 1, 0, confidence),
  });

  const sizes = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
  const spends = steps(-4, 2, 0.125).map((power) => +(10 ** power).toPrecision(2));

  define("exact", () => ({
    controls: {
      guesses: { label: "Guesses r", values: sizes, value: 100, say: count },
      share: { label: "Right", values: steps(0.5, 1, 0.01), value: 0.95, say: percent },
      spent: { label: "Coins given away, m δ", values: spends, value: 1 },
    },
    draw({ guesses, share, spent }, plot) {
      const right = Math.round(share * guesses);
      const at = auditkit.exact(right, guesses, spent, 0.95);
      const top = Math.max(1, Math.ceil(at.pure + 0.3));
      plot.axes({
        x: [1e-4, 100], y: [0, top], log: true, words: ["m δ", "lower bound on ε"],
        // every other one has its number, for all of them would touch on a phone
        ticks: spends.filter((_, i) => i % 8 === 0).map((v, i) => [v, i % 2 ? "" : v]),
        levels: steps(0, top, top > 6 ? 2 : 1),
      });
      const fine = steps(-4, 2, 0.05).map((power) => 10 ** power);
      const curve = fine.map((one) => [one, auditkit.exact(right, guesses, one, 0.95).bound]);
      plot.line([[1e-4, at.pure], [100, at.pure]], "null", "the same count at δ = 0");
      plot.line(curve, "ours", "the exact bound");
      plot.dot(spent, at.bound, "ours");
      return (
        `${count(right)} of ${count(guesses)} right, m δ = ${spent}: ε ≥ ${rounded(at.bound)} ` +
        `with 95% confidence; at δ = 0 it would be ${rounded(at.pure)}. No valid bound from this ` +
        "count is larger."
      );
    },
  }));
})();
