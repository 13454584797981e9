// The mathematics of the widgets: binomial tails, normal laws, and the bounds that stand on them.
// Each function says the same as the one of the package that its comment names; a test holds them
// together. Classic scripts, for a page opened from disk may load no modules.
(() => {
  const { abs, exp, expm1, log, log1p, max, min, PI, sqrt } = Math;
  const logistic = (t) => 1 / (1 + exp(-t));
  const logistically = (t) => (t > 0 ? -log1p(exp(-t)) : t - log1p(exp(t))); // log of it

  // ---- binomial counts: K right of r guesses, each right with odds g ----

  /** What log n! is beyond Stirling's formula (one_run._stirling_error). */
  function stirlingError(n) {
    if (n < 16) {
      let factorial = 1; // exact: 15! has 41 bits
      for (let k = 2; k <= n; k++) factorial *= k;
      return n === 0 ? 0 : log(factorial) - (n + 0.5) * log(n) + n - 0.5 * log(2 * PI);
    }
    const s = 1 / (n * n);
    const inner = 1 / 1260 - (1 / 1680 - (1 / 1188 - (691 / 360360) * s) * s) * s;
    return (1 / 12 - (1 / 360 - inner * s) * s) / n;
  }

  /** x log(x / mean) + mean - x, with its digits where the two are close (one_run._deviance). */
  function deviance(x, mean) {
    const away = (x - mean) / (x + mean);
    if (abs(away) >= 0.1) return x * log(x / mean) + mean - x;
    let total = (x - mean) * away;
    let term = 2 * x * away;
    for (let j = 3; ; j += 2) {
      term *= away * away;
      const next = total + term / j;
      if (next === total) return total;
      total = next;
    }
  }

  /** log P(K = k), by Loader's formula; `t` is log g. Logs of factorials would cancel. */
  function logMass(k, r, t) {
    if (k === 0) return r * logistically(-t);
    if (k === r) return r * logistically(t);
    const errors = stirlingError(r) - stirlingError(k) - stirlingError(r - k);
    const away = deviance(k, r * logistic(t)) + deviance(r - k, r * logistic(-t));
    return errors - away - 0.5 * log(2 * PI * k * (1 - k / r));
  }

  /** P(K ≥ v) / P(K = v), or what it has passed `most` with (one_run._ratio). */
  function tailRatio(v, r, t, most = Infinity) {
    const g = exp(t);
    let total = 1;
    for (let j = 0, term = 1; j < r - v && total <= most; j++) {
      term *= (g * (r - v - j)) / (v + 1 + j);
      total += term;
      if (term <= 1e-17 * total) break;
    }
    return total;
  }

  /** P(K ≥ v). The smaller of the two tails is summed, so that it keeps its digits. */
  function tail(v, r, t) {
    if (v <= 0) return 1;
    if (v > r) return 0;
    if (v < r * logistic(t)) return 1 - tail(r - v + 1, r, -t);
    return exp(logMass(v, r, t)) * tailRatio(v, r, t);
  }

  /** The log-odds t with P(K ≥ k) = level: the beta quantile, as log-odds. */
  function limit(k, r, level) {
    if (k <= 0) return -Infinity;
    if (k === r) return log(level) / r - log(-expm1(log(level) / r));
    let [low, high] = [-750, 750];
    let t = log(k / (r - k));
    for (let step = 0; step < 200; step++) {
      const chance = tail(k, r, t);
      if (chance <= level) low = max(low, t);
      else high = min(high, t);
      // the derivative of P(K ≥ k) in t is k P(wrong) P(K = k)
      const slope = (k * logistic(-t) * exp(logMass(k, r, t))) / chance;
      let next = t - log(chance / level) / slope;
      if (!(next > low && next < high)) next = (low + high) / 2;
      if (abs(next - t) <= 1e-15 * max(1, abs(t))) return next;
      t = next;
    }
    return t;
  }

  /** Clopper and Pearson's limits on a rate (bounds.clopper_pearson). */
  const lowerLimit = (k, n, level) => logistic(limit(k, n, level));
  const upperLimit = (k, n, level) => (k >= n ? 1 : logistic(-limit(n - k, n, level)));

  /** The smallest k with P(K ≤ k) ≥ share (scipy's binom.ppf). */
  function quantile(share, n, chance) {
    const t = log(chance) - log1p(-chance);
    let [low, high] = [-1, n];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (tail(n - middle, n, -t) >= share) high = middle;
      else low = middle;
    }
    return high;
  }

  // ---- one run ----

  /** P* of v of r right guesses and its slope in ε (one_run.worst_chance); `spent` is m δ. */
  function worstChance(v, r, spent, epsilon) {
    const most = spent > 0 ? v / spent : Infinity;
    const ratio = tailRatio(v, r, epsilon, most);
    if (v === 0 || ratio >= most) return [1, 0];
    const wrong = logistic(-epsilon);
    const beta = min(1, exp(logMass(v, r, epsilon)) * ratio);
    const share = (spent * ratio) / v; // m δ / κ, for v / ratio is κ
    const excess = v - r * logistic(epsilon);
    const byBeta = (beta * wrong * v) / ratio;
    const byShare = wrong * v * (1 - 2 * beta) - (1 - beta) * ratio * excess;
    return [beta + (1 - beta) * share, byBeta + (spent / v) * byShare];
  }

  /** The exact bound of one run (auditkit.one_run). */
  function oneRun(right, guesses, examples, delta = 1e-5, confidence = 0.95) {
    const level = 1 - confidence;
    const spent = delta * examples;
    let high = guesses > 0 ? limit(right, guesses, level) : 0;
    if (!(high > 0) || spent === 0) return max(high, 0);
    if (worstChance(right, guesses, spent, 0)[0] > level) return 0;
    let low = 0;
    let x = high;
    for (let step = 0; step < 200; step++) {
      const [chance, slope] = worstChance(right, guesses, spent, x);
      if (chance <= level) low = x;
      else high = x;
      let next = x - (log(chance / level) * chance) / slope;
      if (!(next > low && next < high)) next = (low + high) / 2;
      if (abs(next - x) <= 1e-15 * x) break;
      x = next;
    }
    return x;
  }

  // ---- two worlds ----

  const logRatio = (top, bottom) => log(max(top, bottom) / bottom);

  /** ε from one point of error rates, which no (ε, δ) below it allows. */
  const forbids = (fpr, fnr, delta) =>
    max(logRatio(1 - delta - fnr, fpr), logRatio(1 - delta - fpr, fnr));

  /** Clopper and Pearson's bound (auditkit.two_worlds), with the limits that it stands on. */
  function twoWorlds(fp, negatives, fn, positives, delta = 1e-5, confidence = 0.95) {
    const level = (1 - confidence) / 2;
    const fpr = upperLimit(fp, negatives, level);
    const fnr = upperLimit(fn, positives, level);
    return { fpr, fnr, epsilon: forbids(fpr, fnr, delta) };
  }

  // ---- what an attack of some accuracy would have found (auditkit.would_find) ----

  function oneRunWouldFind(guesses, examples, delta, confidence, accuracy, power = 0.8) {
    const right = quantile(1 - power, guesses, accuracy);
    return oneRun(right, guesses, examples, delta, confidence);
  }

  function twoWorldsWouldFind(negatives, positives, delta, confidence, accuracy, power = 0.8) {
    const level = (1 - confidence) / 2;
    const odds = log1p(-accuracy) - log(accuracy); // of an error
    const world = (n) => {
      const [first, last] = [1e-9, 1 - 1e-9].map((share) => quantile(share, n, 1 - accuracy));
      const errors = Array.from({ length: last - first + 1 }, (_, i) => first + i);
      const masses = errors.map((k) => exp(logMass(k, n, odds)));
      return [errors.map((k) => upperLimit(k, n, level)), masses];
    };
    const [fprs, chances] = world(negatives);
    const [fnrs, others] = world(positives);
    const sums = [0];
    for (const chance of others) sums.push(sums[sums.length - 1] + chance);
    // the bound falls with either count, so that what reaches ε is a staircase of counts
    const reaches = (epsilon) => {
      let count = fnrs.length;
      return fprs.reduce((sum, fpr, i) => {
        while (count > 0 && forbids(fpr, fnrs[count - 1], delta) < epsilon) count--;
        return sum + chances[i] * sums[count];
      }, 0);
    };
    let [low, high] = [0, forbids(fprs[0], fnrs[0], delta) + 1];
    for (let step = 0; step < 60; step++) {
      const middle = (low + high) / 2;
      if (reaches(middle) >= power) low = middle;
      else high = middle;
    }
    return low;
  }

  // ---- normal laws ----

  const density = (x) => exp(-0.5 * x * x) / sqrt(2 * PI);

  /** Mills' ratio (1 - Φ(x)) / φ(x) for x ≥ 0: a series near 0, a continued fraction beyond. */
  function mills(x) {
    if (x < 2) {
      let [sum, term] = [x, x];
      for (let k = 3; term > 1e-18 * sum; k += 2) sum += term *= (x * x) / k;
      return sqrt(PI / 2) * exp(0.5 * x * x) - sum;
    }
    let below = x;
    for (let k = 80; k > 0; k--) below = x + k / below;
    return 1 / below;
  }

  /** Φ(x). */
  const normalCdf = (x) => (x < 0 ? density(x) * mills(-x) : 1 - density(x) * mills(x));

  /** Φ⁻¹(p): Newton on log Φ, which is concave, so that after one step none overshoots. */
  function normalQuantile(p) {
    if (p <= 0 || p >= 1) return p <= 0 ? -Infinity : Infinity;
    if (p > 0.5) return -normalQuantile(1 - p);
    let x = 0;
    for (let step = 0; step < 60; step++) {
      const near = mills(-x);
      const next = min(x - (log(near / sqrt(2 * PI)) - 0.5 * x * x - log(p)) * near, 0);
      if (abs(next - x) <= 1e-15 * abs(x)) return next;
      x = next;
    }
    return x;
  }

  /** log δ of the Gaussian curve at ε, and its slope (tradeoff._log_gaussian_delta). */
  function logGaussianDelta(mu, epsilon) {
    const a = mu / 2 - epsilon / mu;
    const far = density(a) * mills(mu - a);
    const delta = a > 0 ? normalCdf(a) - far : density(a) * (mills(-a) - mills(mu - a));
    return [log(delta), -far / delta];
  }

  /** ε of μ-Gaussian privacy at δ (GaussianDP.epsilon): log δ is concave in ε. */
  function gaussianEpsilon(mu, delta) {
    if (!(mu > 0) || logGaussianDelta(mu, 0)[0] <= log(delta)) return 0;
    let x = max(mu * (mu / 2 - normalQuantile(delta)), 0);
    for (let step = 0; step < 60; step++) {
      const [value, slope] = logGaussianDelta(mu, x);
      const next = max(x - (value - log(delta)) / slope, 0);
      if (abs(next - x) <= 1e-15 * x) return next;
      x = next;
    }
    return x;
  }

  /** Trade-off functions: the least false negative rate at a false positive rate. */
  const gaussianBeta = (mu, alpha) => normalCdf(-normalQuantile(alpha) - mu);
  const approxBeta = (epsilon, delta, alpha) =>
    max(0, 1 - delta - exp(epsilon) * alpha, exp(-epsilon) * (1 - delta - alpha));

  window.auditkit ??= {};
  Object.assign(window.auditkit, {
    logistic, logMass, tail, lowerLimit, upperLimit, quantile, oneRun, forbids, twoWorlds,
    oneRunWouldFind, twoWorldsWouldFind, normalCdf, normalQuantile, gaussianEpsilon, gaussianBeta,
    approxBeta,
  });
})();
