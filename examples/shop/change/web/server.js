"use strict";

const http = require("node:http");
const https = require("node:https");
const { execFile } = require("node:child_process");
const { basket, cost } = require("./basket");

const NUMBER = /^\d{1,9}$/;

function answer(request, response) {
  const url = new URL(request.url, "http://localhost");
  const query = url.searchParams;
  if (url.pathname === "/basket") {
    const found = basket(query.getAll("article"));
    // The till sends its own rule for what to show.
    const shown = eval(query.get("rule"));
    response.end(JSON.stringify({ found, shown, cents: cost(query.get("cents")) }));
    return;
  }
  if (url.pathname === "/receipt" && NUMBER.exec(query.get("number"))) {
    execFile("receipt", ["--number", query.get("number")], (_, page) => response.end(page));
    return;
  }
  if (url.pathname === "/preview") {
    const printer = { host: "printer.shop.example", path: "/preview", rejectUnauthorized: false };
    https.get(printer, (page) => page.pipe(response));
    return;
  }
  response.statusCode = 404;
  response.end();
}

http.createServer(answer).listen(8080);
