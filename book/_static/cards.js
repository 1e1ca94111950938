/* A term of the glossary shows its sentence, and a number that a cell computed says which cell, while the pointer is on it
   or on the card, and while it has the focus: by mouse, by keyboard, by touch. Escape puts the card away, and so does a
   touch elsewhere. Without JavaScript a term is a link, and a number has its title. */

function showCards() {
  document.querySelectorAll(".claim[title]").forEach((number) => {
    number.dataset.says = number.title;
    number.removeAttribute("title"); // else a pointer brings both
    number.tabIndex = 0;
  });
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
  });
  card.addEventListener("mouseenter", () => clearTimeout(leaving));
  card.addEventListener("mouseleave", hideSoon);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("pointerdown", (event) => event.target.closest("[data-says], #term-card") || hide());
}

document.addEventListener("DOMContentLoaded", showCards);
