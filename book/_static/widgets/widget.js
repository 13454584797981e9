// What the widgets share: the place where one stands, its controls, and a plot in inline SVG.
//
// A widget is a function that returns { controls, draw } and may return { ready }. Each control has
// a label, the values that its slider goes through, and the one that it begins with; draw(values,
// plot) draws and returns the sentence that says the same in words.
(() => {
  const KINDS = {};
  // marks of the book's palette, drawn from the middle: circle, square, triangle
  const MARKS = {
    ours: "m-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0",
    paper: "m-5 -5h10v10h-10z",
    estimate: "m0 -6.5l6 11h-12z",
  };

  /** An element of the page, or of a picture, with its attributes and what is in it. */
  function make(name, attributes = {}, ...inside) {
    const picture = ["svg", "g", "path", "circle", "rect", "text", "line"].includes(name);
    const element = picture
      ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  }

  /** Values from one to another, a step apart, without the dust of binary fractions. */
  const steps = (from, to, by) =>
    Array.from({ length: Math.round((to - from) / by) + 1 }, (_, i) => +(from + i * by).toFixed(9));

  /** A number as Python's `:g` writes it. */
  function general(value, digits = 6) {
    if (value === 0) return "0";
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    if (power >= -4 && power < digits) return String(+value.toPrecision(digits));
    return `${+mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }

  /** A lower bound in a few digits, cut off: it may not claim more than it proves. */
  function rounded(value) {
    if (value === 0 || value >= 0.01) {
      const [whole, part = ""] = String(value).split(".");
      return `${whole}.${part.padEnd(3, "0").slice(0, 3)}`;
    }
    const [mantissa, power] = value.toExponential().split("e");
    return general(Number(`${mantissa.slice(0, 5)}e${power}`), 4);
  }

  const count = (value) => value.toLocaleString("en");
  const percent = (value) => `${+(100 * value).toPrecision(4)}%`;

  /** Axes and what is drawn in them; `x` and `y` are [from, to], `log` of x. */
  class Plot {
    constructor(width, alt) {
      this.width = width;
      this.picture = make("svg", { role: "img", "aria-label": alt });
      this.legend = make("ul", { class: "legend" });
    }

    axes({ x, y, height = 280, square = false, log = false, words, ticks = [], levels = [] }) {
      const width = square ? Math.min(this.width, 380) : Math.min(this.width, 620);
      const tall = square ? width : height;
      Object.entries({ width, height: tall, viewBox: `0 0 ${width} ${tall}` }).forEach((pair) =>
        this.picture.setAttribute(...pair)
      );
      const [left, right, top, bottom] = [46, width - 20, 24, tall - 42];
      const by = log ? Math.log : Number;
      this.x = (v) => left + ((by(v) - by(x[0])) / (by(x[1]) - by(x[0]))) * (right - left);
      this.y = (v) => bottom - ((v - y[0]) / (y[1] - y[0])) * (bottom - top);
      this.add("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` });
      for (const [value, text] of ticks) {
        this.add("path", { class: "grid", d: `M${this.x(value)} ${top}V${bottom}` });
        this.words(this.x(value), bottom + 17, text ?? value, "middle");
      }
      for (const value of levels) {
        this.add("path", { class: "grid", d: `M${left} ${this.y(value)}H${right}` });
        this.words(left - 6, this.y(value) + 4, value, "end");
      }
      this.words((left + right) / 2, tall - 6, words[0], "middle");
      this.words(4, 14, words[1], "start");
    }

    add(name, attributes, ...inside) {
      const element = make(name, attributes, ...inside);
      this.picture.append(element);
      return element;
    }

    words(x, y, text, anchor = "start") {
      this.add("text", { x, y, "text-anchor": anchor }, String(text));
    }

    path(points) {
      const place = ([x, y]) => `${this.x(x).toFixed(2)} ${this.y(y).toFixed(2)}`;
      return `M${points.map(place).join("L")}`;
    }

    area(points, name) {
      this.add("path", { class: "area", d: `${this.path(points)}Z` });
      this.explain("area", name, "M0 -5H30V5H0Z");
    }

    line(points, role, name) {
      this.add("path", { class: `line ${role}`, d: this.path(points) });
      if (name) this.explain(`line ${role}`, name, "M0 0H30");
    }

    dot(x, y, role, name) {
      const move = `translate(${this.x(x)} ${this.y(y)})`;
      this.add("path", { class: `dot ${role}`, d: MARKS[role], transform: move });
      if (name) this.explain(`dot ${role}`, name, `M15 0${MARKS[role]}`);
    }

    explain(kind, name, d) {
      const box = { class: "key", viewBox: "0 -7 30 14", width: 30, height: 14 };
      box["aria-hidden"] = "true"; // the name beside it says all
      this.legend.append(make("li", {}, make("svg", box, make("path", { class: kind, d })), name));
    }
  }

  /** A slider through a list of values. A reader hears the value, not its place in the list. */
  function slider({ label, values, value, say = String }, changed) {
    const shown = make("span", { "aria-hidden": "true" });
    const place = { type: "range", min: 0, max: values.length - 1, step: 1 };
    const input = make("input", { ...place, value: values.indexOf(value) });
    const read = () => values[input.valueAsNumber];
    const tell = () => {
      shown.textContent = say(read());
      input.setAttribute("aria-valuetext", say(read()));
    };
    input.addEventListener("input", () => (tell(), changed()));
    tell();
    return { read, element: make("label", {}, make("span", {}, label), shown, input) };
  }

  /** Builds a widget where the page has a place for it. */
  function mount(figure) {
    const { controls = {}, draw, ready } = KINDS[figure.dataset.widget]();
    const [form, stage, output] = [make("form"), make("div", { class: "stage" }), make("output")];
    const sliders = {};
    function redraw() {
      const plot = new Plot(stage.clientWidth || 320, figure.dataset.alt);
      const values = Object.entries(sliders).map(([name, one]) => [name, one.read()]);
      const words = draw(Object.fromEntries(values), plot);
      if (output.textContent !== words) output.textContent = words;
      stage.replaceChildren(plot.picture, plot.legend);
    }
    for (const [name, control] of Object.entries(controls)) {
      sliders[name] = slider(control, redraw);
      form.append(sliders[name].element);
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    figure.prepend(form, ...(draw ? [stage] : []), output);
    ready?.({ form, figure, output, redraw });
    if (!draw) return;
    let width; // letters keep their size: what changes with the page is the picture
    const fit = () => stage.clientWidth !== width && ((width = stage.clientWidth), redraw());
    new ResizeObserver(fit).observe(stage);
  }

  window.auditkit ??= {};
  Object.assign(window.auditkit, {
    make, steps, general, rounded, count, percent,
    define: (name, kind) => (KINDS[name] = kind),
  });
  document.addEventListener("DOMContentLoaded", () => {
    for (const figure of document.querySelectorAll("[data-widget]")) {
      if (figure.dataset.widget in KINDS) mount(figure);
    }
  });
})();
