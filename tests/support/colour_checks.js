// Checks of a page's colours in the mode that is on, as a function that Playwright evaluates.
(scheme) => {
  const findings = [];
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  // The canvas turns every notation of a colour into red, green, blue and opacity.
  const once = (compute, known = new Map()) => (key) => {
    if (!known.has(key)) known.set(key, compute(key));
    return known.get(key);
  };
  const parse = once((colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  });
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const background = once((element) => {
    const own = parse(getComputedStyle(element).backgroundColor);
    if (own[3] === 1) return own;
    const below = element.parentElement ? background(element.parentElement) : [255, 255, 255, 1];
    return over(own, below);
  });
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  // Text: 4.5 to 1, and 3 to 1 from 24 pixels (WCAG 2.2, success criterion 1.4.3).
  const main = document.querySelector("main, article, [role=main]") ?? document.body;
  const seen = new Set();
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !element.checkVisibility({ checkOpacity: true })) continue;
    if (element.closest("script, style, svg, mjx-assistive-mml, .headerlink")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const below = background(element);
    const ratio = contrast(over(parse(style.color), below), below);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (ratio < needed) {
      const text = walker.currentNode.data.trim().slice(0, 30);
      findings.push(["contrast", `${ratio.toFixed(1)} to 1 for "${text}" in <${element.tagName.toLowerCase()} class="${element.className}">`]);
    }
  }

  // Pictures in dark mode stand on a light plate, have their light turned round, or are marked as drawn for both modes.
  if (scheme === "dark") {
    for (const img of main.querySelectorAll("img")) {
      if (img.matches(".dark-light, .only-dark, .only-light") || img.offsetParent === null) continue;
      if (/invert\((?:0\.[89]|1)/.test(getComputedStyle(img).filter)) continue;
      const plate = parse(getComputedStyle(img).backgroundColor);
      if (plate[3] < 1 || luminance(plate) < 0.5) findings.push(["picture", `no light plate behind ${img.src}`]);
    }
  }
  return { background: background(document.body).slice(0, 3).join(","), findings: findings.slice(0, 20) };
}
