// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes one picture of a page about a kernel (kvbuf-run --report=PAGE.html) as a
// file of its own:
//
//   node draw.js PAGE.html "Timeline of block 0,0,0" PICTURE.svg
//
// The page's own script draws it, on a stand-in for a browser's document that
// knows what this script asks of it. The picture gets the page's styles, so that
// it is light or dark as its reader is; coordinates are rounded, and texts that
// show under a pointer left out.

"use strict";
const fs = require("fs");

class Element {
  constructor(name) {
    this.name = name;
    this.attributes = new Map();
    this.children = [];
    this.dataset = {};
    this.text = "";
  }
  setAttribute(key, value) { this.attributes.set(key, String(value)); }
  append(...what) {
    for (const child of what)
      if (child instanceof Element)
        this.children.push(child);
  }
  replaceChildren() { this.children = []; }
  addEventListener() {}
  querySelector() { return null; }
  set textContent(text) {
    this.text = text;
    this.children = [];
  }
  get textContent() { return this.text; }
  /// As a browser: that of the first option.
  get value() {
    return this.children.length ? this.children[0].attributes.get("value") : "";
  }
  * all(name) {
    if (this.name === name)
      yield this;
    for (const child of this.children)
      yield* child.all(name);
  }
}

const [page, title, out] = process.argv.slice(2);
if (!out) {
  console.error("usage: node draw.js PAGE.html TITLE PICTURE.svg");
  process.exit(2);
}
const html = fs.readFileSync(page, "utf8");
const part = pattern => pattern.exec(html)[1];
const data = part(/<script type="application\/json" id="data">([^]*?)<\/script>/);
const script = part(/<script>\s*("use strict";[^]*?)<\/script>/);
const style = part(/<style>([^]*?)<\/style>/);

const byId = new Map();
const document = {
  getElementById(id) {
    if (!byId.has(id))
      byId.set(id, new Element(id));
    return byId.get(id);
  },
  createElement : name => new Element(name),
  createElementNS : (_, name) => new Element(name),
};
document.getElementById("data").textContent = data;
new Function("document", script)(document);

const pictures = [...byId.values() ].flatMap(e => [...e.all("svg") ]);
const titleOf = svg => svg.children.find(c => c.name === "title").text;
const svg = pictures.find(p => titleOf(p) === title);
if (!svg) {
  console.error(`the page has no picture '${title}'; it has ` +
                pictures.map(p => `'${titleOf(p)}'`).join(", "));
  process.exit(1);
}

// Of the page's styles: colours, and what says how pictures look.
const colours = [...style.matchAll(/:root \{[^}]*\}/g) ].map(m => m[0]);
const drawn = style.split("\n").filter(line => line.startsWith("svg"));
const css = `${colours[0]}\n@media (prefers-color-scheme: dark) { ${colours[1]} }\n${
    drawn.join("\n")}\n`;

const escaped = text => String(text)
                            .replace(/&/g, "&amp;")
                            .replace(/</g, "&lt;")
                            .replace(/"/g, "&quot;");
const rounded = text => text.replace(/\d+\.\d+/g, n => String(+(+n).toFixed(1)));
const write = (e, depth) => {
  let tag = `<${e.name}`;
  for (const [key, value] of e.attributes)
    tag += ` ${key}="${escaped(rounded(value))}"`;
  const inner = e.children.filter(c => !(c.name === "title" && depth));
  if (!inner.length)
    return tag + (e.text ? `>${escaped(e.text)}</${e.name}>` : "/>");
  return `${tag}>\n${inner.map(c => write(c, depth + 1)).join("\n")}\n</${e.name}>`;
};
svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
const sheet = new Element("style");
sheet.text = css;
svg.children.unshift(sheet);
// Styles are no markup here.
const text = write(svg, 0).replace(/<style>[^]*?<\/style>/, `<style>\n${css}</style>`);
fs.writeFileSync(out, text + "\n");
