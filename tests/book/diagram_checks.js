// Checks of the diagrams of a page, in the theme that is on, as a function that Playwright evaluates; returns messages.
() => {
  const findings = [];
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const luminance = (rgb) => {
    const [x, y, z] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  // The box of a text is as high as its line; a fifth less above and below is what is inked.
  const inked = (text) => {
    const { x, y, width, height } = text.getBBox();
    return { left: x, right: x + width, top: y + 0.2 * height, bottom: y + 0.8 * height };
  };
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const holds = (a, b) => a.left <= b.left && b.right <= a.right && a.top <= b.top && b.bottom <= a.bottom;

  for (const svg of document.querySelectorAll("svg.diagram")) {
    const { width, height } = svg.viewBox.baseVal;
    const texts = [...svg.querySelectorAll("text")].map((t) => ({ node: t, said: t.textContent, ...inked(t) }));
    const shapes = [...svg.querySelectorAll(":scope > rect, :scope > circle")].map((node) => {
      const { x, y, width: w, height: h } = node.getBBox();
      return { node, left: x, right: x + w, top: y, bottom: y + h };
    });
    const points = [...svg.querySelectorAll(":scope > path")].flatMap((path) => {
      const length = path.getTotalLength();
      return Array.from({ length: Math.ceil(length / 2) + 1 }, (_, i) => path.getPointAtLength(Math.min(2 * i, length)));
    });
    texts.forEach((text, i) => {
      const picture = { left: 0, right: width, top: 0, bottom: height };
      if (!holds(picture, text)) findings.push(`"${text.said}" leaves the picture`);
      for (const other of texts.slice(i + 1)) {
        if (meet(text, other)) findings.push(`"${text.said}" and "${other.said}" stand on each other`);
      }
      const named = shapes.some((shape) => shape.node.tagName === "circle" && holds(shape, text));
      const around = shapes.filter((shape) => holds(shape, text));
      for (const shape of shapes.slice(1)) {
        const round = shape.node.tagName === "circle";
        if (!round && meet(text, shape) && !holds(shape, text)) {
          findings.push(`"${text.said}" crosses the edge of a box`);
          break;
        }
      }
      if (!named && points.some((p) => p.x > text.left && p.x < text.right && p.y > text.top && p.y < text.bottom)) {
        findings.push(`"${text.said}" is crossed by a line`);
      }
      let ground = parse(getComputedStyle(document.body).backgroundColor).slice(0, 3);
      for (const { node } of around) {
        const style = getComputedStyle(node);
        if (style.fill === "none") continue;
        const [r, g, b, a] = parse(style.fill);
        ground = over([r, g, b, a * parseFloat(style.fillOpacity)], ground);
      }
      const ratio = contrast(parse(getComputedStyle(text.node).fill).slice(0, 3), ground);
      if (ratio < 4.5) findings.push(`contrast ${ratio.toFixed(1)} to 1 for "${text.said}"`);
    });
  }
  return findings;
}
