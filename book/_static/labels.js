// Names that a screen reader says, where the theme's differ from what is seen.
// Runs when the page is parsed and before the theme's own scripts.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;

  // "Toggle hidden content" hides "Show code cell source"; "Search" hides its shortcut.
  const spoken = "details > summary[aria-label], .search-button-field[aria-label]";
  for (const element of document.querySelectorAll(spoken)) element.removeAttribute("aria-label");

  // The button is "Color mode"; its three pictures need no names of their own.
  for (const icon of document.querySelectorAll(".theme-switch")) icon.removeAttribute("title");

  // The items of the bibliography's list: their own role is withdrawn from the standard.
  for (const entry of document.querySelectorAll("[role=list] > [role=doc-biblioentry]")) {
    entry.setAttribute("role", "listitem");
  }
});
