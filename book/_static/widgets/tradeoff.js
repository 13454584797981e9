// ε, δ and μ as trade-off curves: what each promises to a tester.
(() => {
  const { approxBeta, define, gaussianBeta, gaussianEpsilon, normalCdf, percent, steps } = auditkit;

  /** Least false negative rates at a false positive rate, and what μ means at this δ. */
  auditkit.tradeoff = (epsilon, delta, mu, alpha) => ({
    approx: approxBeta(epsilon, delta, alpha),
    gaussian: gaussianBeta(mu, alpha),
    epsilon: mu > 0 && delta === 0 ? Infinity : gaussianEpsilon(mu, delta),
  });

  const deltas = [0, 1e-8, 1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3];

  define("tradeoff", () => ({
    controls: {
      epsilon: { label: "ε", values: steps(0, 5, 0.1), value: 1 },
      delta: { label: "δ", values: deltas, value: 0.1 },
      mu: { label: "μ", values: steps(0, 4, 0.1), value: 1 },
      alpha: { label: "At the rate α", values: steps(0, 1, 0.01), value: 0.1, say: percent },
    },
    draw({ epsilon, delta, mu, alpha }, plot) {
      const grid = [0.2, 0.4, 0.6, 0.8, 1];
      plot.axes({
        x: [0, 1], y: [0, 1], square: true, ticks: [[0], ...grid.map((v) => [v])], levels: grid,
        words: ["false positive rate α", "false negative rate β"],
      });
      const pairs = (f, values = steps(0, 1, 1 / 128)) => values.map((a) => [a, f(a)]);
      const curve = pairs((a) => approxBeta(epsilon, delta, a));
      // even steps of the normal score, where the Gaussian curve bends
      const bends = [0, ...steps(-5, 5, 0.1).map((z) => normalCdf(z)), 1];
      plot.area([[0, 0], ...curve, [1, 0]], "forbidden by ε and δ");
      plot.line(pairs((a) => 1 - a, [0, 1]), "null", "guessing");
      plot.line(curve, "ours", `ε = ${epsilon}, δ = ${delta}`);
      plot.line(pairs((a) => gaussianBeta(mu, a), bends), "paper", `μ = ${mu}`);
      const at = auditkit.tradeoff(epsilon, delta, mu, alpha);
      plot.dot(alpha, at.approx, "ours");
      plot.dot(alpha, at.gaussian, "paper");
      const stated = Number.isFinite(at.epsilon) ? at.epsilon.toFixed(3) : "∞";
      return (
        `A test with ${percent(alpha)} false positives has at least ${percent(at.approx)} false ` +
        `negatives under (${epsilon}, ${delta}), and at least ${percent(at.gaussian)} under ` +
        `μ = ${mu}. At δ = ${delta} the Gaussian curve has ε = ${stated}.`
      );
    },
  }));
})();
