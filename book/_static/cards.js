/* A term of the glossary shows its sentence, and a number that a cell computed says which cell, while the pointer is on it
   or on the card, and while it has the focus: by mouse, by keyboard, by touch. Escape puts the card away, and so does a
   touch elsewhere. Without JavaScript a term is a link, and a number has its title. */

/* The numbers of a paragraph, or of a table, are one stop of the Tab key, where a lecture would have more than a hundred;
   arrow keys go from one to another. WAI-ARIA's practices call this a roving tabindex. */
function numbersByPlace() {
  const found = new Map();
  document.querySelectorAll(".claim[title]").forEach((number) => {
    number.dataset.says = number.title;
    number.removeAttribute("title"); // else a pointer brings both
    const place = number.closest("table") ?? number.closest("p") ?? number.parentElement;
    found.set(place, [...(found.get(place) ?? []), number]);
  });
  return [...found.values()];
}

function makeOneStop(numbers) {
  numbers.forEach((number, place) => {
    const cell = number.closest("td, th");
    const inRow = (row) => row?.cells[cell.cellIndex]?.querySelector(".claim");
    const next = {
      ArrowLeft: () => numbers[place - 1],
      ArrowRight: () => numbers[place + 1],
      ...(cell && {
        ArrowUp: () => inRow(cell.parentElement.previousElementSibling),
        ArrowDown: () => inRow(cell.parentElement.nextElementSibling),
      }),
    };
    number.tabIndex = place ? -1 : 0;
    if (numbers.length > 1) number.dataset.place = `${place + 1} of ${numbers.length}`;
    number.addEventListener("focus", () => {
      numbers.forEach((other) => {
        other.tabIndex = other === number ? 0 : -1;
      });
    });
    number.addEventListener("keydown", (event) => {
      if (!next[event.key] || numbers.length < 2) return;
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return; // the browser's: Alt goes back a page
      event.preventDefault(); // else the page, or the table, scrolls
      next[event.key]()?.focus();
    });
  });
}

function showCards() {
  numbersByPlace().forEach(makeOneStop);
  const words = document.querySelectorAll("[data-says]");
  if (!words.length) return;
  const card = document.createElement("div");
  card.id = "term-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);
  let leaving;

  const hide = () => {
    clearTimeout(leaving);
    card.hidden = true;
    document.querySelector("[data-says][aria-describedby]")?.removeAttribute("aria-describedby");
  };
  const hideSoon = () => {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 200); // time to move from the word to the card
  };
  const show = (word) => {
    hide();
    card.textContent = word.dataset.says;
    if (word.dataset.place && word.matches(":focus-visible")) { // for those who came by keyboard, and who hear the card
      const hint = document.createElement("small");
      hint.style.display = "block";
      hint.textContent = `Number ${word.dataset.place} here: arrow keys go to the others.`;
      card.append(hint);
    }
    card.hidden = false;
    word.setAttribute("aria-describedby", card.id);
    const place = word.getBoundingClientRect();
    const room = document.documentElement.clientWidth - card.offsetWidth - 8;
    const below = place.bottom + card.offsetHeight + 8 < window.innerHeight;
    card.style.left = `${window.scrollX + Math.max(8, Math.min(place.left, room))}px`;
    card.style.top = `${window.scrollY + (below ? place.bottom + 4 : place.top - card.offsetHeight - 4)}px`;
  };

  words.forEach((word) => {
    // a touch is a click where nothing takes the focus; that on a term follows its link
    ["mouseenter", "focus", "click"].forEach((event) => word.addEventListener(event, () => show(word)));
    word.addEventListener("mouseleave", hideSoon);
    word.addEventListener("blur", hide);
    word.addEventListener("keydown", (event) => { // again, after Escape; on a term, a link, these keys have a meaning
      if (!word.matches(".claim") || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      show(word);
    });
  });
  card.addEventListener("mouseenter", () => clearTimeout(leaving));
  card.addEventListener("mouseleave", hideSoon);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("pointerdown", (event) => event.target.closest("[data-says], #term-card") || hide());
}

document.addEventListener("DOMContentLoaded", showCards);
