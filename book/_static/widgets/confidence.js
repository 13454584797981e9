// Counts and confidence: what was measured is an estimate, what is sure is less.
(() => {
  const { approxBeta, count, define, forbids, percent, rounded, steps, twoWorlds } = auditkit;

  /** Measured rates, their upper limits, and what either pair says of ε. */
  auditkit.confidence = (fp, negatives, fn, positives, delta, confidence) => {
    const [alpha, beta] = [fp / negatives, fn / positives];
    const estimate = forbids(alpha, beta, delta);
    return { alpha, beta, estimate, ...twoWorlds(fp, negatives, fn, positives, delta, confidence) };
  };

  const errors = { values: steps(0, 0.5, 0.01), value: 0.27, say: percent };
  const runs = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000];
  const confidences = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999];

  define("confidence", () => ({
    controls: {
      runs: { label: "Runs in each world", values: runs, value: 200, say: count },
      alphas: { ...errors, label: "False positives" },
      betas: { ...errors, label: "False negatives" },
      confidence: { label: "Confidence", values: confidences, value: 0.95, say: percent },
    },
    draw({ runs, alphas, betas, confidence }, plot) {
      const [fp, fn] = [alphas, betas].map((share) => Math.round(share * runs));
      const found = auditkit.confidence(fp, runs, fn, runs, 0, confidence);
      const most = Math.max(found.fpr, found.fnr);
      const end = [0.05, 0.1, 0.2, 0.5].find((size) => size >= 1.3 * most) ?? 1;
      const grid = [0.2, 0.4, 0.6, 0.8, 1].map((part) => +(part * end).toPrecision(3));
      plot.axes({
        x: [0, end], y: [0, end], square: true, ticks: [[0], ...grid.map((v) => [v])], levels: grid,
        words: ["false positive rate α", "false negative rate β"],
      });
      // the border crosses the frame where it is above it: points there are drawn on its edge
      const edge = steps(0, 1, 1 / 256).map((part) => part * part * end);
      const border = edge.map((a) => [a, Math.min(end, approxBeta(found.epsilon, 0, a))]);
      const name = `forbidden to every ε below ${rounded(found.epsilon)}`;
      plot.area([[0, 0], ...border, [end, 0]], name);
      const box = [[0, found.fnr], [found.fpr, found.fnr], [found.fpr, 0]];
      plot.line(box, "truth", `upper limits, ${percent(confidence)} sure together`);
      plot.dot(found.alpha, found.beta, "estimate", "measured rates: the estimate");
      plot.dot(found.fpr, found.fnr, "ours", "both at their limits: the bound");
      const estimate = Number.isFinite(found.estimate) ? found.estimate.toFixed(3) : "infinite";
      return (
        `${count(fp)} and ${count(fn)} errors in ${count(runs)} runs each. ` +
        `Estimate: ${estimate}, which proves nothing. Bound: ε ≥ ${rounded(found.epsilon)} at δ = 0 with ` +
        `${percent(confidence)} confidence.`
      );
    },
  }));
})();
