/* What a reader of a long page needs: contents that follow, figures that open in full, formulas a keyboard can scroll,
   buttons that say what they copy. Without JavaScript nothing is missing but the comfort. */

function followContents() {
  const contents = document.querySelector(".bd-sidebar-secondary");
  if (!contents) return;
  const show = () => {
    const links = contents.querySelectorAll("a.nav-link.active");
    const link = links[links.length - 1];
    if (!link || contents.scrollHeight <= contents.clientHeight) return;
    const box = contents.getBoundingClientRect();
    const place = link.getBoundingClientRect();
    if (place.top < box.top + 40 || place.bottom > box.bottom - 40) {
      contents.scrollTop += place.top - box.top - box.height / 3;
    }
  };
  new MutationObserver(show).observe(contents, { subtree: true, attributes: true, attributeFilter: ["class"] });
  show();
}

function enlargeFigures() {
  const frame = document.createElement("dialog");
  frame.className = "figure-in-full";
  frame.setAttribute("aria-label", "Figure in full size");
  frame.addEventListener("click", () => frame.close());
  // the dialog's own Escape does not come through beside the theme's listeners
  frame.addEventListener("keydown", (event) => event.key === "Escape" && frame.close());
  document.body.append(frame);
  const open = (figure) => {
    const copy = figure.cloneNode(true);
    ["tabindex", "role", "title"].forEach((name) => copy.removeAttribute(name));
    frame.replaceChildren(copy);
    frame.showModal();
  };
  document.querySelectorAll(".cell_output img, svg.diagram").forEach((figure) => {
    if (figure.tagName === "IMG") {
      figure.tabIndex = 0;
      figure.setAttribute("role", "button");
      figure.title = "Open in full size";
    }
    figure.addEventListener("click", () => open(figure));
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        open(figure);
      }
    });
  });
}

function reachFormulas() {
  document.querySelectorAll("div.math, pre, table.indextable, .pst-scrollable-table-container").forEach((box) => {
    const wide = [box, ...box.querySelectorAll("mjx-container")].find((part) => part.scrollWidth > part.clientWidth + 1);
    if (wide) wide.tabIndex = 0;
  });
}

/* Who hears the page would hear "Copy to clipboard" seventy times: each button says what it copies. */
function nameCopyButtons() {
  document.querySelectorAll("button.copybtn").forEach((button, place) => {
    const lines = document.querySelector(button.dataset.clipboardTarget).textContent.split("\n");
    const first = lines.find((line) => line.trim() && !line.startsWith("#")) ?? lines[0];
    const what = `${button.closest(".cell_output") ? "output" : "code"} ${place + 1}: ${first}`;
    const name = () => button.setAttribute("aria-label", `${button.dataset.tooltip} ${what}`);
    new MutationObserver(name).observe(button, { attributeFilter: ["data-tooltip"] }); // "Copied!", for two seconds
    name();
  });
}

/* On a narrow screen contents lie over the page: Escape puts them away, and the focus returns to what opened them. */
function returnFromContents() {
  ["primary", "secondary"].forEach((side) => {
    const over = document.getElementById(`pst-${side}-sidebar-modal`);
    const back = () => document.querySelector(`.${side}-toggle`)?.focus();
    over?.addEventListener("keydown", (event) => event.key === "Escape" && over.addEventListener("close", back, { once: true }));
  });
}

document.addEventListener("DOMContentLoaded", () => {
  followContents();
  enlargeFigures();
  nameCopyButtons();
  returnFromContents();
});
window.addEventListener("load", () => {
  const set = window.MathJax?.startup?.promise ?? Promise.resolve();
  // at once, and whenever something is unfolded or the window has another width
  set.then(() => new ResizeObserver(reachFormulas).observe(document.body));
});
