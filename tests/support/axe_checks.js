// What axe-core counts against WCAG 2.2 at level AA, or against the one rule that is named; as a function that Playwright
// evaluates in a page where axe-core is. Returns a message for each element.
async ([rule, theirs]) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const runOnly = rule ? { type: "rule", values: [rule] } : { type: "tag", values: tags };
  const found = await axe.run({ exclude: theirs }, { runOnly, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.html.slice(0, 120)}`),
  );
}
