#!/bin/sh
# Removes the receipts that were printed, and what printing left behind.
set -eu

receipts="${SHOP_RECEIPTS:-}"
spool="${SHOP_SPOOL:?say where printing leaves its files}"

rm -rf "$receipts/"*
rm -rf -- "${spool:?}/done"
