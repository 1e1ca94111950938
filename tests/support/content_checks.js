// Checks of a page's content, as a function that Playwright evaluates; returns [kind, message] pairs.
() => {
  const findings = [];
  const report = (kind, message) => findings.push([kind, message]);
  const excerpt = (text) => text.trim().replace(/\s+/g, " ").slice(0, 80);
  const main = document.querySelector("main, article, [role=main]") ?? document.body;

  // Pictures
  const fileName = /\.(png|svg|jpe?g|gif|webp)$|_images\/|^[0-9a-f]{16,}$/i;
  for (const img of document.images) {
    const alt = img.getAttribute("alt");
    if (alt === null) report("alt", `no alt text: ${img.src}`);
    else if (fileName.test(alt.trim())) report("alt", `the alt text is a file name: ${alt}`);
    else if (!alt.trim() && main.contains(img)) report("alt", `the alt text is empty: ${img.src}`);
    if (img.complete && img.naturalWidth === 0) report("picture", `cannot be shown: ${img.src}`);
  }
  for (const svg of main.querySelectorAll("svg")) {
    const named = svg.getAttribute("aria-label") || svg.querySelector("title") || svg.getAttribute("aria-labelledby");
    if (svg.closest("[aria-hidden=true], .fa-lock, mjx-container, button, a")) continue;
    if (!named) report("alt", `a drawing without a name: ${excerpt(svg.outerHTML)}`);
  }

  // Mathematics: everything that Sphinx marked as mathematics is set, and no TeX is left in the text.
  for (const node of main.querySelectorAll("span.math, div.math")) {
    if (!node.querySelector("mjx-container")) report("math", `not set: ${excerpt(node.textContent)}`);
  }
  for (const error of main.querySelectorAll("mjx-merror, [data-mjx-error], mjx-mtext[style*='red']")) {
    report("math", `TeX error: ${excerpt(error.dataset.mjxError ?? error.textContent)}`);
  }
  const raw = /\$[^$\s](?:[^$\n]*[^$\s])?\$|\$\$|\\\(|\\\[|\\begin\{/;
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("pre, code, script, style, mjx-container, span.math, div.math")) continue;
    if (raw.test(node.data)) report("math", `TeX in the text: ${excerpt(node.data)}`);
  }

  // Folded content can be told apart and opened.
  for (const details of main.querySelectorAll("details")) {
    const label = details.querySelector("summary");
    if (!label || !label.textContent.trim()) report("fold", "folded content without a label");
  }

  // Tabs: in each set exactly one is open.
  for (const set of main.querySelectorAll(".sd-tab-set")) {
    const open = [...set.children].filter((c) => c.classList.contains("sd-tab-content") && c.offsetParent !== null);
    const hidden = set.offsetParent === null || set.closest("details:not([open])");
    if (open.length !== 1 && !hidden) report("tabs", `${open.length} tabs open at once`);
  }

  const titles = main.querySelectorAll("article h1").length;
  if (main.querySelector("article") && titles !== 1) report("heading", `${titles} titles`);

  window.widestElement = (width) => {
    const scrolls = (e) => e && e !== document.body && (/auto|scroll|hidden|clip/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    const wide = [...document.body.querySelectorAll("*")].filter(
      (e) => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement));
    return wide.slice(0, 3).map((e) => `<${e.tagName.toLowerCase()} class="${e.className}">`).join(", ");
  };
  return findings;
}
