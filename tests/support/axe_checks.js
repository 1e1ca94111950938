// What axe-core counts against WCAG 2.2 at level AA, or against the rules that are named, and not against those that are
// left out; as a function that Playwright evaluates in a page where axe-core is. Returns a message for each element.
async ([rules, theirs, without = []]) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const runOnly = rules ? { type: "rule", values: rules } : { type: "tag", values: tags };
  // preload would ask the server for style sheets that the theme's own refer to and do not need
  const off = Object.fromEntries(without.map((rule) => [rule, { enabled: false }]));
  const options = { runOnly, rules: off, resultTypes: ["violations"], preload: false };
  const found = await axe.run({ exclude: theirs }, options);
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.html.slice(0, 120)}`),
  );
}
