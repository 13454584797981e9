// Audit nothing again: scores that know nothing, and how often a threshold rule "finds" a leak.
(() => {
  const { define, make, percent, quantile } = auditkit;
  const [AUDITS, EXAMPLES, ROWS, LEVEL, LASTS] = [200, 400, 5, 0.05, 4000]; // LASTS in ms

  /** The least number of right guesses that is "too many" for coins. */
  const known = new Map();
  function needed(guesses, level) {
    const key = `${guesses} ${level}`;
    if (!known.has(key)) known.set(key, quantile(1 - level, guesses, 0.5) + 1);
    return known.get(key);
  }

  /**
   * What each rule finds in one audit of nothing at δ = 0. `right` says of all guesses, the surest
   * first, whether they are right; `tried` thresholds are spread evenly from few guesses to all.
   */
  auditkit.nullAudit = (right, tried) => {
    const sums = [0];
    for (const one of right) sums.push(sums[sums.length - 1] + one);
    const finds = (guesses, level) => sums[guesses] >= needed(guesses, level);
    const size = (i) => Math.round((right.length * (i + 1)) / tried);
    const sizes = Array.from({ length: tried }, (_, i) => size(i));
    return {
      fixed: finds(right.length / 10, LEVEL),
      best: sizes.some((guesses) => finds(guesses, LEVEL)),
      corrected: sizes.some((guesses) => finds(guesses, LEVEL / tried)),
    };
  };

  /** Scores that know nothing guess by coins. */
  const coins = () => Array.from({ length: EXAMPLES }, () => +(Math.random() < 0.5));
  const deal = () => Array.from({ length: AUDITS }, coins);

  define("null_audits", () => {
    let [audits, shown] = [deal(), 0];

    /** A rule's audits: false alarms pile up from the left, the others from the right. */
    function pile(plot, top, cell, title, alarms) {
      plot.words(0, top - 8, title);
      alarms.forEach((alarm, i) => {
        const before = alarms.slice(0, i).filter((one) => one === alarm).length;
        const place = alarm ? before : AUDITS - 1 - before;
        const [cx, cy] = [Math.floor(place / ROWS), place % ROWS].map((at) => (at + 0.5) * cell);
        const kind = alarm ? "dot alarm" : "dot silent";
        plot.add("circle", { class: kind, cx, cy: top + cy, r: alarm ? 0.42 * cell : 0.2 * cell });
      });
      const promise = ((LEVEL * AUDITS) / ROWS) * cell;
      plot.add("path", { class: "line promise", d: `M${promise} ${top - 3}v${ROWS * cell + 6}` });
    }

    return {
      controls: {
        tried: { label: "Thresholds tried", values: [1, 2, 4, 5, 10, 20, 50, 100], value: 100 },
      },
      draw({ tried }, plot) {
        const width = Math.min(plot.width, 620);
        const cell = width / (AUDITS / ROWS);
        const found = audits.map((one) => auditkit.nullAudit(one, tried));
        const rules = {
          best: tried > 1 ? `the best of ${tried} thresholds` : "all guesses, no choice",
          corrected: "the same, paid for",
          fixed: "one threshold, fixed before looking",
        };
        const each = ROWS * cell + 44;
        const box = { width, height: 3 * each, viewBox: `0 0 ${width} ${3 * each}` };
        Object.entries(box).forEach((pair) => plot.picture.setAttribute(...pair));
        const shares = Object.entries(rules).map(([rule, name], i) => {
          const alarms = found.slice(0, shown).map((one) => one[rule]);
          const number = alarms.filter(Boolean).length;
          pile(plot, i * each + 28, cell, `${name}: ${number} of ${shown}`, alarms);
          return `in ${percent(number / AUDITS)} by ${name}`;
        });
        plot.explain("dot alarm", "“found” a leak", "M10 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0");
        plot.explain("dot silent", "found nothing", "M13 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0");
        plot.explain("line promise", "at most 5% are promised", "M15 -7V7");
        if (shown < AUDITS) return ""; // a reader who listens is told the end, not each step
        return `There is no leak. Of ${AUDITS} audits it was “found” ${shares.join("; ")}.`;
      },
      ready({ form, figure, redraw }) {
        let running = 0;
        const still = matchMedia("(prefers-reduced-motion: reduce)");
        function run() {
          cancelAnimationFrame(running);
          const start = performance.now();
          const step = (now) => {
            const part = still.matches ? 1 : Math.min(1, Math.max(0, now - start) / LASTS);
            shown = Math.round(part * AUDITS);
            redraw();
            if (shown < AUDITS) running = requestAnimationFrame(step);
          };
          running = requestAnimationFrame(step);
        }
        const again = make("button", { type: "button" }, "Audit nothing again");
        again.addEventListener("click", () => ((audits = deal()), run()));
        form.append(again);
        new IntersectionObserver((seen, observer) => {
          if (seen.some((one) => one.isIntersecting)) run(observer.disconnect());
        }).observe(figure);
      },
    };
  });
})();
