"use strict";

function basket(articles) {
  const counts = new Map();
  for (const article of articles) {
    counts.set(article, (counts.get(article) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

module.exports = { basket };
