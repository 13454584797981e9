// Distribution shift: the share of right guesses that a zero-run audit may keep.
(() => {
  const { define, logistic, normalCdf, normalQuantile, percent, steps } = auditkit;
  const { exp, max, min, sqrt } = Math;

  /** Φ(x + μ) + Φ(x) = mass, solved for Φ(x + μ): right guesses without a shift, by bisection. */
  function rightWithout(mass, mu) {
    let [low, high] = [-45 - mu, -mu / 2];
    for (let step = 0; step < 70; step++) {
      const x = (low + high) / 2;
      if (normalCdf(x + mu) + normalCdf(x) > mass) high = x;
      else low = x;
    }
    return normalCdf((low + high) / 2 + mu);
  }

  /** h(q) / H(q) where the best attack has its threshold at z (sharp_tampering._ratio). */
  function ratio(z, shift, mu) {
    const [own, other, far] = [logistic(shift), logistic(-shift), z - (2 * shift) / mu];
    const right = own * normalCdf(z + mu) + other * normalCdf(far + mu);
    const wrong = other * normalCdf(z) + own * normalCdf(far);
    return right > 0 ? rightWithout(right + wrong, mu) / right : 1;
  }

  /** The sharp share: the least such ratio over all thresholds (auditkit's sharp_keep). */
  function sharp(shift, mu) {
    if (shift === 0) return 1;
    if (mu < 0.1) return (1 + exp(-shift)) / 2; // events matter that are too rare for a float
    const highest = shift / mu - mu / 2;
    const top = min(highest, 9);
    const by = (top + 36) / 24;
    const tried = steps(0, 23, 1).map((place) => top - place * by);
    const best = tried.reduce((a, b) => (ratio(b, shift, mu) < ratio(a, shift, mu) ? b : a));
    let [low, high] = [best - by, min(best + by, highest)];
    const golden = (sqrt(5) - 1) / 2;
    for (let step = 0; step < 30; step++) {
      const [left, right] = [high - golden * (high - low), low + golden * (high - low)];
      if (ratio(left, shift, mu) < ratio(right, shift, mu)) high = right;
      else low = left;
    }
    return min(ratio(best, shift, mu), ratio((low + high) / 2, shift, mu)) - 1e-9;
  }

  /** What a shift does to one example, and what each correction takes for it. */
  auditkit.shift = (shift, mu) => ({
    propensity: logistic(shift),
    paper: exp(-shift),
    sharp: sharp(shift, mu),
    composition: 2 * normalQuantile(logistic(shift)), // the μ that composition takes off
  });

  define("shift", () => ({
    controls: {
      shift: { label: "Shift s of an example", values: steps(0, 4, 0.05), value: 1 },
      mu: { label: "μ that is tested", values: steps(0, 3, 0.1), value: 1 },
      found: { label: "Right guesses", values: steps(0.5, 1, 0.01), value: 0.9, say: percent },
    },
    draw({ shift, mu, found }, plot) {
      const at = auditkit.shift(shift, mu);
      plot.axes({
        x: [0, 4], y: [0, 1], words: ["shift s", "share of right guesses that is kept"],
        ticks: [0, 1, 2, 3, 4].map((v) => [v]), levels: [0, 0.2, 0.4, 0.6, 0.8, 1],
      });
      const line = (f) => steps(0, 4, 0.125).map((s) => [s, f(s)]);
      plot.line(line((s) => sharp(s, mu)), "ours", `sharp, μ = ${mu}`);
      plot.line(line((s) => exp(-s)), "paper", "the paper's");
      plot.dot(shift, at.sharp, "ours");
      plot.dot(shift, at.paper, "paper");
      const left = (share) => max(0, Math.round(1000 * found * share));
      return (
        `Shift ${shift}: without any leak ${percent(+at.propensity.toFixed(4))} of guesses can ` +
        `be right. Of ${Math.round(1000 * found)} right guesses in 1,000 the paper's ` +
        `correction keeps ${left(at.paper)}, the sharp one ${left(at.sharp)}. Composition takes ` +
        `μ = ${at.composition.toFixed(2)} off instead, in squares.`
      );
    },
  }));
})();
