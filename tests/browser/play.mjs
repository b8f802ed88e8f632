// Plays streams in Chromium, all at once, and prints what each player saw as JSON.
//
//   node play.mjs '{"seconds": 8, "jobs": [{"mode": "hlsjs-ll", "url": "http://…/index.m3u8"}]}'
//
// Modes: hlsjs-ll, hlsjs-ts, native, mpegts, shaka (each in a page of another origin than the
// stream, so that cross-origin rules are tested, too) and page-ll, page-ts, page-flv (the gateway's
// own player page at `url`). `screenshot` in a job names a PNG file to write at the end.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const FIRST_PICTURE_MS = 20_000;
const SETTLED_MS = 1500;
const here = fileURLToPath(new URL(".", import.meta.url));
const modules = fileURLToPath(new URL("../node_modules/", import.meta.url));

const { seconds, jobs } = JSON.parse(process.argv[2]);
const server = createServer(serve);
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required", "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows", "--mute-audio",
  ],
});
try {
  const reports = await Promise.all(jobs.map(play));
  console.log(JSON.stringify(reports));
} finally {
  await browser.close();
  server.close();
}

async function serve(request, response) {
  const path = new URL(request.url, "http://localhost").pathname;
  const page = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><video muted playsinline></video><script src="/player.js"></script>';
  try {
    const js = { "content-type": "text/javascript" };
    if (path === "/") response.writeHead(200, { "content-type": "text/html" }).end(page);
    else if (path === "/player.js") response.writeHead(200, js).end(await readFile(`${here}player.js`));
    else if (path.startsWith("/modules/")) response.writeHead(200, js).end(await readFile(modules + path.slice(9)));
    else response.writeHead(404).end();
  } catch (error) {
    response.writeHead(404).end(String(error));
  }
}

async function play(job) {
  const page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
  const httpErrors = [];
  const consoleErrors = [];
  const began = Date.now();
  page.on("response", (response) => {
    if (response.status() >= 400) httpErrors.push(`${response.status()} ${response.url()}`);
  });
  page.on("console", (message) => message.type() === "error" && consoleErrors.push(message.text()));
  page.on("pageerror", (error) => consoleErrors.push(String(error)));
  await page.goto(address(job));
  const timely = await page
    .waitForFunction(() => document.querySelector("video").getVideoPlaybackQuality().totalVideoFrames > 0
      && document.querySelector("video").currentTime > 0, null, { polling: 50, timeout: FIRST_PICTURE_MS })
    .then(() => true, () => false);
  const firstPictureMs = Date.now() - began;
  const watched = timely ? await watch(page) : await page.evaluate(sample);
  if (job.screenshot) await page.screenshot({ path: job.screenshot });
  await page.close();
  return {
    mode: job.mode, url: job.url, first_picture_ms: timely ? firstPictureMs : null,
    ...watched, http_errors: httpErrors, console_errors: consoleErrors,
  };
}

function address({ mode, url }) {
  if (mode.startsWith("page-")) return `${url}#${mode.slice(5)}`;
  return `http://127.0.0.1:${server.address().port}/?${new URLSearchParams({ mode, url })}`;
}

/**
 * Samples often, so that a picture that stands still is seen without the player's own word. Time and
 * frames count from when the player has settled: after their first picture, players jump to the live
 * edge, and may wait there for the next part.
 */
async function watch(page) {
  await page.waitForTimeout(SETTLED_MS);
  const first = await page.evaluate(sample);
  let last = first;
  let moved = first.at;
  let longestFreeze = 0;
  while (last.at - first.at < seconds * 1000) {
    await page.waitForTimeout(100);
    const next = await page.evaluate(sample);
    if (next.position !== last.position) {
      longestFreeze = Math.max(longestFreeze, next.at - moved);
      moved = next.at;
    }
    last = next;
  }
  longestFreeze = Math.max(longestFreeze, last.at - moved);
  return {
    ...last,
    watched_s: (last.at - first.at) / 1000,
    advanced_s: last.position - first.position,
    frames: last.frames - first.frames,
    dropped: last.dropped - first.dropped,
    waits: last.waits - first.waits,
    early_waits: first.waits,
    longest_freeze_ms: longestFreeze,
  };
}

/** Runs in the page. */
function sample() {
  const video = document.querySelector("video");
  const quality = video.getVideoPlaybackQuality();
  const own = window.weir;
  return {
    at: performance.now(),
    position: video.currentTime,
    frames: quality.totalVideoFrames,
    dropped: quality.droppedVideoFrames,
    width: video.videoWidth,
    height: video.videoHeight,
    has_audio: video.webkitAudioDecodedByteCount > 0,
    waits: own ? own.stats.stalls : window.observed.waits,
    errors: own ? (own.lastError ? [own.lastError] : []) : window.observed.errors,
    latency_s: own ? own.stats.latency : window.observed.latency(),
    page: own ? { state: own.state, mode: own.mode, stats: own.stats } : null,
  };
}
