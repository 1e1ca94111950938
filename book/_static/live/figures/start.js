/* Brings every live figure of the page to life. Without it, and until then, each shows a still drawing. */

document.addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll(".live-figure[data-live]")) {
    live.use(`figures/${figure.dataset.live}`).start(figure);
  }
});
