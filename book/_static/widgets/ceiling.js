// Right of r guesses: the bound, and the ceiling that so many guesses have.
(() => {
  const { count, define, oneRun, percent, rounded, steps } = auditkit;

  /** What a count of right guesses suggests and proves, and what the best count would, at δ = 0. */
  auditkit.ceiling = (right, guesses, confidence) => ({
    estimate: Math.max(0, Math.log(right / (guesses - right))),
    bound: oneRun(right, guesses, guesses, 0, confidence),
    ceiling: oneRun(guesses, guesses, guesses, 0, confidence),
  });

  const SURE = [0.8, 0.9, 0.95, 0.99];
  const sizes = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000];

  define("ceiling", () => ({
    controls: {
      guesses: { label: "Guesses r", values: sizes, value: 100, say: count },
      share: { label: "Right", values: steps(0.5, 1, 0.01), value: 0.9, say: percent },
      confidence: { label: "Confidence", values: SURE, value: 0.95, say: percent },
    },
    draw({ guesses, share, confidence }, plot) {
      const right = Math.round(share * guesses);
      const at = auditkit.ceiling(right, guesses, confidence);
      const top = Math.ceil(at.ceiling + 0.5);
      plot.axes({
        x: [0.5, 1], y: [0, top], words: ["share of right guesses", "ε"],
        ticks: [0.5, 0.6, 0.7, 0.8, 0.9, 1].map((v) => [v, percent(v)]),
        levels: steps(0, top, top > 6 ? 2 : 1),
      });
      const stride = Math.ceil(guesses / 400);
      const counts = steps(0, Math.floor(guesses / 2 / stride), 1).map((i) => guesses - i * stride);
      const bounds = counts.map((k) => [k / guesses, oneRun(k, guesses, guesses, 0, confidence)]);
      const shares = steps(0.5, 0.999, 0.001).filter((v) => Math.log(v / (1 - v)) < top);
      plot.line([[0.5, at.ceiling], [1, at.ceiling]], "upper", "ceiling: all right");
      plot.line(shares.map((v) => [v, Math.log(v / (1 - v))]), "estimate", "estimate: log-odds");
      plot.line(bounds, "ours", "bound");
      plot.dot(right / guesses, at.bound, "ours");
      return (
        `${count(right)} of ${count(guesses)} right: ε ≥ ${rounded(at.bound)} at δ = 0 with ` +
        `${percent(confidence)} confidence. So many guesses never prove more than ` +
        `${rounded(at.ceiling)}, whatever the mechanism.`
      );
    },
  }));
})();
