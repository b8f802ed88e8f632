#!/usr/bin/env bash
# Copies the players that the page embeds, unchanged, out of tests/node_modules (`make vendor`).
set -euo pipefail
cd "$(dirname "$0")"
modules=../../tests/node_modules
cp "$modules/hls.js/dist/hls.min.js" vendor/hls.js
cp "$modules/hls.js/LICENSE" vendor/hls.js.LICENSE
cp "$modules/mpegts.js/dist/mpegts.js" vendor/mpegts.js
cp "$modules/mpegts.js/LICENSE" vendor/mpegts.js.LICENSE
cat "$modules/mpegts.js/dist/mpegts.js.LICENSE.txt" >>vendor/mpegts.js.LICENSE
