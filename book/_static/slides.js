// Keys, steps and notes of slides: those of all figures, and the decks of lectures.

// the theme of the book, if the reader has chosen one there, else that of the machine
const chosen = localStorage.getItem("mode");
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme =
  chosen === "dark" || chosen === "light" ? chosen : dark ? "dark" : "light";

addEventListener("DOMContentLoaded", () => {
  const only = new URLSearchParams(location.search).get("only")?.split(",");
  if (only) document.querySelectorAll("section").forEach((one) => only.includes(one.id) || one.remove());
  // without a script all steps are seen; those within a formula come with their class
  document.querySelectorAll(".step").forEach((one) => one.classList.add("later"));
  const slides = [...document.querySelectorAll("section")];
  const forward = ["ArrowRight", "ArrowDown", "PageDown", " "];
  const back = ["ArrowLeft", "ArrowUp", "PageUp"];
  /** The slide whose top is nearest to the top of the window. */
  const shown = () =>
    slides.reduce((best, one, i) => {
      const far = (slide) => Math.abs(slide.getBoundingClientRect().top);
      return far(one) < far(slides[best]) ? i : best;
    }, 0);
  const show = (i) => {
    const slide = slides[Math.max(0, Math.min(slides.length - 1, i))];
    slide.scrollIntoView();
    history.replaceState(null, "", `#${slide.id}`);
  };
  // a formula is said as a whole to whoever hears it: there its parts are no steps
  const seen = ":not(mjx-assistive-mml *)";
  const next = () => {
    const here = shown();
    const step = slides[here].querySelector(`.later${seen}`);
    if (step) step.classList.remove("later");
    else show(here + 1);
  };
  const previous = () => {
    const here = shown();
    const step = [...slides[here].querySelectorAll(`.step:not(.later)${seen}`)].at(-1);
    if (step) step.classList.add("later");
    else show(here - 1);
  };
  addEventListener("click", (event) => {
    if (!event.target.closest("a") && getSelection().isCollapsed) next();
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (back.includes(event.key) || (event.key === " " && event.shiftKey)) previous();
    else if (forward.includes(event.key)) next();
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(slides.length - 1);
    else if (event.key === "n") document.documentElement.toggleAttribute("data-notes");
    else if (event.key === "f" && document.fullscreenElement) document.exitFullscreen();
    else if (event.key === "f") document.documentElement.requestFullscreen();
    else return;
    event.preventDefault();
  });
});
