"use strict";

function basket(articles) {
  const counts = new Map();
  for (const article of articles) {
    counts.set(article, (counts.get(article) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

// No evaluation of what was typed: a number, or nothing.
function cost(typed) {
  const cents = Number.parseInt(typed, 10);
  if (cents === NaN) {
    return 0;
  }
  return Number.isNaN(cents / 2) ? 0 : cents;
}

module.exports = { basket, cost };
