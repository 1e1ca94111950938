/* A term of the glossary shows its sentence while the pointer is on it or on the card, and while it has the focus; Escape
   puts the card away. */

function showTerms() {
  const terms = document.querySelectorAll("a.term");
  if (!terms.length) return;
  const card = document.createElement("div");
  card.id = "term-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);
  let leaving;

  const hide = () => {
    clearTimeout(leaving);
    card.hidden = true;
    document.querySelector("a.term[aria-describedby]")?.removeAttribute("aria-describedby");
  };
  const hideSoon = () => {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 200); // time to move from the word to the card
  };
  const show = (term) => {
    hide();
    card.textContent = term.dataset.says;
    card.hidden = false;
    term.setAttribute("aria-describedby", card.id);
    const word = term.getBoundingClientRect();
    const room = document.documentElement.clientWidth - card.offsetWidth - 8;
    const below = word.bottom + card.offsetHeight + 8 < window.innerHeight;
    card.style.left = `${window.scrollX + Math.max(8, Math.min(word.left, room))}px`;
    card.style.top = `${window.scrollY + (below ? word.bottom + 4 : word.top - card.offsetHeight - 4)}px`;
  };

  terms.forEach((term) => {
    term.addEventListener("mouseenter", () => show(term));
    term.addEventListener("focus", () => show(term));
    term.addEventListener("mouseleave", hideSoon);
    term.addEventListener("blur", hide);
  });
  card.addEventListener("mouseenter", () => clearTimeout(leaving));
  card.addEventListener("mouseleave", hideSoon);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

document.addEventListener("DOMContentLoaded", showTerms);
