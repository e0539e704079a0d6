"use strict";

const http = require("node:http");
const { basket } = require("./basket");

function answer(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (url.pathname === "/basket") {
    response.end(JSON.stringify(basket(url.searchParams.getAll("article"))));
    return;
  }
  response.statusCode = 404;
  response.end();
}

http.createServer(answer).listen(8080);
