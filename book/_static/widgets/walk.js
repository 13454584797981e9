// Which audit can I run? The list of the page, one question at a time. Without scripts all of it
// stands there; an item with a list of its own is a question, one without is where the walk ends.
(() => {
  const { define, make } = auditkit;

  define("walk", () => ({
    ready({ form, figure, output }) {
      const items = [...figure.querySelectorAll("figcaption > ol > li")];
      const answers = items.map((item) => item.querySelector("ul"));
      const refusals = answers.map((answer) => answer && make("span", {}, " No."));
      refusals.forEach((said, i) => said && answers[i].previousElementSibling.append(said));
      const button = (words, press) => {
        const element = make("button", { type: "button" }, words);
        element.addEventListener("click", press);
        return element;
      };
      let at = 0;
      const yes = button("Yes", () => show(true));
      const no = button("No", () => (at++, show(false)));
      const again = button("Start again", () => ((at = 0), show(false)));
      const choice = make("div", { class: "choice" });

      /** Shows the questions up to this one; `found` where it was answered by yes. */
      function show(found, first = false) {
        const end = found || !answers[at];
        items.forEach((item, i) => {
          item.hidden = i > at;
          item.classList.toggle("past", i < at);
          if (!answers[i]) return;
          refusals[i].hidden = i >= at;
          answers[i].hidden = i !== at || !found;
        });
        choice.replaceChildren(...(end ? [] : [yes, no]), ...(at || found ? [again] : []));
        items[at].append(choice);
        const asked = `Question ${at + 1} of ${answers.filter(Boolean).length}.`;
        output.textContent = end ? (answers[at] ?? items[at].firstChild).textContent : asked;
        if (!first) (end ? again : yes).focus(); // the button that was pressed may be gone
      }
      form.remove();
      show(false, true);
    },
  }));
})();
