#!/bin/sh
# Copies the orders to the folder that is given.
set -eu

target="${1:?say where to}"
mkdir -p "$target"
cp -- orders.db "$target/orders-$(date +%F).db"
